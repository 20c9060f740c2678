"""What an engine logs of its memory, in the words of several versions of vLLM."""

from math import ceil
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from servesim import ConfigError
from servesim.config.vllm.log import EngineLog, of_lines, read_log

#: vLLM 0.6.3 (github.com/vllm-project/vllm/issues/10517).
V0_6 = """\
Loading model weights took 14.9888 GB
Memory profiling results: total_gpu_memory=23.58GiB initial_memory_usage=15.34GiB peak_torch_memory=17.06GiB \
memory_usage_post_profile=15.35GiB non_torch_memory=0.35GiB kv_cache_size=3.81GiB gpu_memory_utilization=0.90
# GPU blocks: 1952, # CPU blocks: 2048
Maximum concurrency for 20000 tokens per request: 1.56x
"""
#: vLLM 0.8, engine V0 (github.com/kubernetes-sigs/gateway-api-inference-extension/pull/550).
V0_8 = """\
INFO 03-21 20:15:45 [worker.py:267] the current vLLM instance can use total_gpu_memory (79.19GiB) x \
gpu_memory_utilization (0.90) = 71.27GiB
INFO 03-21 20:15:45 [worker.py:267] model weights take 12.55GiB; non_torch_memory takes 0.16GiB; PyTorch \
activation peak memory takes 2.38GiB; the rest of the memory reserved for KV Cache is 56.18GiB.
INFO 03-21 20:15:46 [executor_base.py:111] # cuda blocks: 7191, # CPU blocks: 512
"""
#: vLLM 0.10 with its debug lines, engine V1.
V0_10 = """\
(EngineCore_DP0 pid=255) INFO 09-28 21:12:00 [core.py:76] Initializing a V1 LLM engine (v0.10.2) with \
config: \
model='Qwen/Qwen3-4B', max_seq_len=1024, tensor_parallel_size=1, pipeline_parallel_size=1
(EngineCore_DP0 pid=255) INFO 09-28 21:12:30 [gpu_model_runner.py:2340] Model loading took 8.7966 GiB \
and 3.2 seconds
(EngineCore_DP0 pid=255) DEBUG 09-28 21:12:43 [v1/worker/gpu_worker.py:297] Memory profiling takes 14.40 \
seconds. \
Total non KV cache memory: 10.22GiB; torch peak memory increase: 1.40GiB; non-torch forward increase memory: \
0.02GiB; weights memory: 8.80GiB.
(EngineCore_DP0 pid=255) INFO 09-28 21:12:43 [v1/worker/gpu_worker.py:298] Available KV cache memory: 8.60 GiB
(EngineCore_DP0 pid=255) INFO 09-28 21:12:44 [v1/core/kv_cache_utils.py:864] GPU KV cache size: 62,608 tokens
(EngineCore_DP0 pid=255) INFO 09-28 21:12:44 [v1/core/kv_cache_utils.py:868] Maximum concurrency for \
1,024 tokens \
per request: 61.14x
"""


def read(text: str) -> EngineLog:
    return of_lines(text.splitlines())


def test_vllm_0_6() -> None:
    log = read(V0_6)
    assert (log.weights_gib, log.kv_gib, log.gpu_gib) == (14.9888, 3.81, 23.58)
    assert (log.kv_blocks(16), log.max_model_len, log.concurrency) == (1952, 20000, 1.56)


def test_vllm_0_8_with_the_older_engine() -> None:
    log = read(V0_8)
    assert (log.gpu_gib, log.weights_gib, log.runtime_gib) == (79.19, 12.55, 0.16)
    assert (log.activations_gib, log.kv_gib, log.kv_blocks(128)) == (2.38, 56.18, 7191)


def test_vllm_0_10() -> None:
    log = read(V0_10)
    assert (log.version, log.tensor_parallel_size, log.engines) == ("0.10.2", 1, 1)
    assert (log.weights_gib, log.activations_gib, log.runtime_gib, log.kv_gib) == (8.80, 1.40, 0.02, 8.60)
    assert (log.tokens, log.kv_blocks(16), log.concurrency) == (62608, 3913, 61.14)


def test_one_line_for_size_and_concurrency() -> None:
    """As vLLM has it later (github.com/vllm-project/vllm/issues/54662)."""
    line = "GPU KV cache size: 476,016 tokens, Maximum concurrency for 131,072 tokens per request: 3.63x"
    log = read(f"INFO [kv_cache_utils.py:2040] {line}")
    assert (log.tokens, log.max_model_len, log.concurrency) == (476016, 131072, 3.63)


def test_colours_prefixes_and_time_stamps_do_not_matter() -> None:
    dressed = "\n".join(
        f"2026-04-19T12:05:26.331Z vllm-1  | \x1b[1;36m(EngineCore_DP0 pid=279)\x1b[0;0m {line}"
        for line in V0_8.splitlines()
    )
    assert read(dressed) == read(V0_8)
    inside = V0_10.replace("GPU KV cache size: ", "GPU KV cache size: \x1b[32m").replace(
        " tokens\n", "\x1b[0m tokens\n"
    )
    assert read(inside) == read(V0_10)


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=8), st.sampled_from(["_DP{}", "_{}"]))
def test_of_several_engines_the_least_counts(tokens: list[int], name: str) -> None:
    lines = [
        f"(EngineCore{name.format(rank)} pid={100 + rank}) INFO GPU KV cache size: {count:,} tokens"
        for rank, count in enumerate(tokens)
    ]
    log = of_lines(lines)
    assert (log.tokens, log.engines) == (min(tokens), len(tokens))


def test_of_several_workers_the_fullest_counts() -> None:
    lines = [
        f"(Worker_TP{rank} pid={rank}) INFO [gpu_worker.py:1] {what}"
        for rank, weights, kv in ((0, 7.5, 60.1), (1, 7.6, 60.0))
        for what in (
            f"Model loading took {weights} GiB memory and 2 s",
            f"Available KV cache memory: {kv} GiB",
        )
    ]
    log = of_lines(lines)
    assert (log.weights_gib, log.kv_gib) == (7.6, 60.0)


@given(st.integers(1, 10**6), st.integers(1, 10**5), st.sampled_from([8, 16, 32, 64]))
def test_blocks_are_found_again_from_the_tokens_that_either_version_tells(
    blocks: int, longest: int, size: int
) -> None:
    whole = EngineLog(tokens=blocks * size, max_model_len=longest)
    assert whole.kv_blocks(size) == blocks
    told = int(blocks / ceil(longest / size) * longest)
    assume(told % size)
    assert EngineLog(tokens=told, max_model_len=longest).kv_blocks(size) == pytest.approx(blocks, abs=1)


def test_the_dry_run_of_cuda_graphs_is_no_override() -> None:
    dry, real = (
        f"INFO [kv_cache_utils.py:829] Overriding num_gpu_blocks={n} with num_gpu_blocks_override=512"
        for n in (0, 740)
    )
    assert read(dry).overridden is None
    assert read(real).overridden == 740


@pytest.mark.parametrize("text", ["", "nothing here\n", "\x00\xff", "Model loading took 3 GiB\n"])
def test_a_log_that_says_nothing_of_a_kv_cache_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "engine.log"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError, match="says nothing of a KV cache"):
        read_log(path)


def test_a_log_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_log(tmp_path / "none.log")
    with pytest.raises(ConfigError, match="directory"):
        read_log(tmp_path)


@given(st.text(max_size=200))
def test_any_text_is_a_log(text: str) -> None:
    of_lines(text.splitlines())


@pytest.mark.parametrize("value", ["-0.36", "x", "1.2.3", "1e999", ""])
def test_a_figure_that_is_none_is_left_out(value: str) -> None:
    log = read(f"Available KV cache memory: {value} GiB")
    assert log.kv_gib is None
    assert of_lines([f"GPU KV cache size: {'9' * 400} tokens"]) == EngineLog()


@pytest.mark.parametrize(
    "line",
    [
        "Available KV cache memory: -0.36 GiB",
        "GPU KV cache size: 0 tokens",
        "# GPU blocks: 0, # CPU blocks: 2048",
        "Maximum concurrency for 0 tokens per request",
        f"GPU KV cache size: {'9' * 23} tokens",
    ],
)
def test_a_line_that_says_what_cannot_be_is_refused(line: str, tmp_path: Path) -> None:
    path = tmp_path / "engine.log"
    path.write_text(f"{V0_10}{line}\n")
    with pytest.raises(ConfigError, match="says what no engine can have") as caught:
        read_log(path)
    (problem,) = caught.value.problems
    assert str(problem.value) in line
