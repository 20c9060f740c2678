"""A small file of each format, by hand, with the traps of each; and what stands in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple


class Sample(NamedTuple):
    """The text of a file, its format, and its requests: times (s; None: no times), tokens in and out."""

    format: str
    text: str
    times_s: list[float] | None
    inputs: list[int]
    outputs: list[int]
    ids: list[list[int]] | None = None
    block_tokens: int = 0
    left_out: int = 0
    unread: tuple[str, ...] = ()


def lines(*records: dict[str, object]) -> str:
    """Return JSON lines."""
    return "".join(json.dumps(record) + "\n" for record in records)


def conversation(*texts: str) -> dict[str, object]:
    turns = [{"from": ("human", "gpt")[turn % 2], "value": text} for turn, text in enumerate(texts)]
    return {"id": "x", "conversations": turns}


BURST_6 = """\
Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
5,ChatGPT,472,18,490,Conversation log
45,ChatGPT,1087,0,1087,Conversation log
45.5,GPT-4,417,276,693,API log
"""

SAMPLES = {
    "azure_2023": Sample(
        "azure",
        "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
        "2023-11-16 18:15:46.6805900,374,44\r\n2023-11-16 18:15:50.9951690,396,0\r\n",
        [1_700_158_546.68059, 1_700_158_550.995169],
        [374, 396],
        [44, 0],
    ),
    "azure_2024": Sample(
        "azure",
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
        "2024-05-12 00:00:00.001163+00:00,2162,5\n2024-05-12 00:00:01+00:00,2399,6\n",
        [1_715_472_000.001163, 1_715_472_001.0],
        [2162, 2399],
        [5, 6],
    ),
    "mooncake": Sample(
        "mooncake",
        '{"timestamp": 0, "input_length": 700, "output_length": 3, "hash_ids": [0, 1]}\n'
        '{"timestamp": 3000, "input_length": 1025, "output_length": 0, "hash_ids": [0, 2, 3]}\r\n\n'
        '{"timestamp": 3000, "input_length": 100000, "output_length": 1, "hash_ids": ['
        + ", ".join(map(str, range(100, 296)))
        + "]}\n",
        [0.0, 3.0, 3.0],
        [700, 1025, 100_000],
        [3, 0, 1],
        [[0, 1], [0, 2, 3], list(range(100, 296))],
        512,
    ),
    "mooncake_without_blocks": Sample(
        "mooncake",
        lines(
            {"timestamp": 0, "input_length": 7, "output_length": 3, "priority": 1},
            {"timestamp": 2, "input_length": 9, "output_length": 4, "created_time": 5},
        ),
        [0.0, 0.002],
        [7, 9],
        [3, 4],
        unread=("priority", "created_time"),
    ),
    "mooncake_with_sessions": Sample(
        "mooncake",
        lines(
            {"session_id": "a", "timestamp": 1.5, "input_length": 7, "output_length": 3},
            {"session_id": 4, "timestamp": 2, "input_length": 8, "output_length": 0, "delay": None},
            {"session_id": "a", "delay": 20, "input_length": 9, "output_length": 5},
            {"session_id": "a", "delay_ms": 0.5, "timestamp": 9, "input_length": 1, "output_length": 2},
        ),
        [0.0015, 0.002, 0.0215, 0.009],
        [7, 8, 9, 1],
        [3, 0, 5, 2],
    ),
    "vllm_timed": Sample(
        "vllm_timed",
        lines(
            {"timestamp": 61, "input_length": 40, "output_length": 132, "hash_ids": [1, 2**64 - 1, 3]},
            {"timestamp": 62.5, "input_length": 16, "output_length": 9, "hash_ids": [1]},
        ),
        [61.0, 62.5],
        [40, 16],
        [132, 9],
        [[1, 2**64 - 1, 3], [1]],
        16,
    ),
    "vllm_timed_without_blocks": Sample(
        "vllm_timed",
        lines({"timestamp": 12.4, "input_length": 42, "output_length": 8}),
        [12.4],
        [42],
        [8],
    ),
    "burstgpt_6": Sample(
        "burstgpt",
        BURST_6,
        [5.0, 45.5],
        [472, 417],
        [18, 276],
        left_out=1,
        unread=("Model", "Total tokens", "Log Type"),
    ),
    "burstgpt_8": Sample(
        "burstgpt",
        "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
        "19440110.0,1722ac82-0a46-4bf0-aa08-89794e7a2b3f,43,GPT-4,906,446,1352,Conversation log\n"
        "19440161.0,,0,ChatGPT,0,0,0,API log\n",
        [19_440_110.0],
        [906],
        [446],
        left_out=1,
        unread=("Session ID", "Elapsed time", "Model", "Total tokens", "Log Type"),
    ),
    "sharegpt": Sample(
        "sharegpt",
        json.dumps(
            [
                conversation("a" * 40, "b" * 41, "and a third turn"),
                conversation("Hi", "the answer to a prompt of one token"),
                conversation("a question without an answer"),
                conversation("c" * 4096, "d" * 16),
                conversation("e" * 4100, "a prompt of more than 1,024 tokens"),
                conversation("f" * 4096, "g" * 4100),
            ],
            indent=1,
        ),
        None,
        [10, 1024],
        [11, 4],
        left_out=4,
    ),
    "vidur": Sample(
        "vidur",
        "arrived_at,num_prefill_tokens,num_decode_tokens\n0.25,10,3\n1.5,20,4\n",
        [0.25, 1.5],
        [10, 20],
        [3, 4],
    ),
    "vidur_lengths": Sample(
        "vidur",
        "num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio\n10,3,13,3.33\n20,4,24,5.0\n",
        None,
        [10, 20],
        [3, 4],
        unread=("num_total_tokens", "pd_ratio"),
    ),
    "splitwise": Sample(
        "splitwise",
        "request_id,request_type,application_id,arrival_timestamp,batch_size,prompt_size,token_size\n"
        "0,2,0,0.1,1,512,128\n1,2,0,0.35,1,64,2\n",
        [0.1, 0.35],
        [512, 64],
        [128, 2],
        unread=("request_id", "request_type", "application_id"),
    ),
    "llmservingsim": Sample(
        "llmservingsim",
        lines(
            {"input_toks": 128, "output_toks": 9, "arrival_time_ns": 0, "input_tok_ids": [1, 2, 3]},
            {"input_toks": 64, "output_toks": 1, "arrival_time_ns": 1_234_567_891},
        ),
        [0.0, 1.234567891],
        [128, 64],
        [9, 1],
        unread=("input_tok_ids",),
    ),
    "llmservingsim_measured": Sample(
        "llmservingsim",
        lines(
            {
                "request_id": "bench-0",
                "input_toks": 2358,
                "output_toks": 531,
                "arrival_time": 1777142838.5,
                "queued_ts": 479748.340626232,
            }
        ),
        [1_777_142_838.5],
        [2358],
        [531],
        unread=("request_id", "queued_ts"),
    ),
    "vllm_bench": Sample(
        "vllm_bench",
        json.dumps(
            {
                "date": "20260131-120000",
                "input_lens": [5, 6, 7],
                "output_lens": [2, 0, 4],
                "ttfts": [0.1, 0.0, 0.2],
                "itls": [[0.01], [], [0.01, 0.01, 0.01]],
                "start_times": [479748.5, 479749.0, 479749.5],
                "errors": ["", "Traceback", ""],
            }
        ),
        [479748.5, 479749.5],
        [5, 7],
        [2, 4],
        left_out=1,
        unread=("date", "ttfts", "itls", "errors"),
    ),
    "vllm_bench_over_lines": Sample(
        "vllm_bench",
        json.dumps({"input_lens": [5, 6], "output_lens": [2, 1]}, indent=2),
        None,
        [5, 6],
        [2, 1],
    ),
    "native_csv": Sample(
        "native",
        "sent_s,input_tokens,output_tokens,block_hashes,block_tokens,user\n"
        "0.5,20,3,7 9,16,a\n0.5,5,1,8,16,b\n",
        [0.5, 0.5],
        [20, 5],
        [3, 1],
        [[7, 9], [8]],
        16,
        unread=("user",),
    ),
    "native_jsonl": Sample(
        "native",
        lines(
            {"arrival_s": 3, "input_tokens": 20, "output_tokens": 3, "block_hashes": [], "block_tokens": 4}
        ),
        [3.0],
        [20],
        [3],
        [[]],
        4,
    ),
    "native_without_times": Sample(
        "native", "input_tokens,output_tokens\n20,3\n5,1\n", None, [20, 5], [3, 1]
    ),
    "lengths_of_llmservingsim": Sample(
        "native",
        "request,input_toks,output_toks,arrival_s\n0,85,416,0.046927\n",
        [0.046927],
        [85],
        [416],
        unread=("request",),
    ),
}


def write(sample: Sample, path: Path) -> Path:
    """Write a sample's file, with the line ends that it has."""
    path.write_bytes(sample.text.encode())
    return path
