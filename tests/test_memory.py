"""`servesim memory`: the sheet by itself, beside a log, and what is taken over from it."""

import re
from pathlib import Path

import pytest

from servesim import load
from servesim.cli import main
from servesim.cost.memory import GIB

SMALL = ["model=llama3.1-8b", "cluster.tensor_parallel_size=1", "cluster.replicas=1"]
#: Llama-3.1-8B in BF16 under vLLM 0.19.0 on an H100, utilisation 0.95, 1,024 sequences, 8,192 tokens per step
#: (llm-d-incubation/llm-d-planner, accuracy/results/v0.19.0/logs).
LOG = """\
\x1b[1;36m(EngineCore_DP0 pid=279)\x1b[0;0m INFO 04-02 15:47:51 [core.py:105] Initializing a V1 LLM \
engine (v0.19.0) \
with config: model='meta-llama/Llama-3.1-8B-Instruct', max_seq_len=131072, tensor_parallel_size=1, seed=0
(EngineCore_DP0 pid=279) INFO 04-02 15:48:51 [gpu_model_runner.py:4481] Model loading took 14.99 GiB \
memory and 9.6 s
(EngineCore_DP0 pid=279) INFO 04-02 15:49:21 [gpu_worker.py:436] Available KV cache memory: 58.11 GiB
(EngineCore_DP0 pid=279) INFO 04-02 15:49:21 [kv_cache_utils.py:1319] GPU KV cache size: 476,016 tokens
(EngineCore_DP0 pid=279) INFO 04-02 15:49:21 [kv_cache_utils.py:1324] Maximum concurrency for 131,072 \
tokens per \
request: 3.63x
"""
LOGGED = [*SMALL, "scheduler.gpu_memory_utilization=0.95"]


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "engine.log"
    path.write_text(LOG)
    return str(path)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    assert main(["memory", *arguments]) == status
    return capsys.readouterr().out


def column(text: str, label: str) -> list[float]:
    """Return the numbers of the line that begins with a label."""
    line = next(line for line in text.splitlines() if line.startswith(label))
    figures = re.findall(r"[-+]?\d[\d,]*\.?\d*", line.removeprefix(label))
    return [float(figure.replace(",", "")) for figure in figures]


@pytest.mark.parametrize("overrides", [[], SMALL, [*SMALL, "gpu=l40s"], ["scheduler=static"]])
def test_the_sheet_adds_up_in_both_units(overrides: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, *overrides)
    labels = ["GPU memory (driver)", "weights", "activations", "runtime (CUDA, NCCL)"]
    terms = [column(out, label)[:2] for label in labels]
    beyond = column(out, "beyond gpu_memory_utilization 0.9")
    kv = column(out, "KV cache  ")
    for unit, tolerance in ((0, 0.04), (1, 0)):
        total = sum(term[unit] for term in terms) + beyond[unit]
        assert total == pytest.approx(kv[unit], abs=tolerance)
    assert kv[1] / GIB == pytest.approx(kv[0], abs=0.006)
    (pool,) = load(*overrides).deployments()
    assert column(out, "KV cache of a replica:")[:3] == [
        pool.sheet.kv_tokens,
        pool.kv_blocks,
        pool.sheet.block_size,
    ]


def test_the_concurrency_is_that_of_vllm(capsys: pytest.CaptureFixture[str]) -> None:
    """Blocks / blocks of a sequence of max_model_len tokens, the last of them not full."""
    out = printed(capsys, *SMALL, "scheduler.max_model_len=1000")
    (pool,) = load(*SMALL).deployments()
    assert f"Maximum concurrency for 1,000 tokens per request: {pool.kv_blocks / 63:.2f}x" in out


def test_each_pool_has_its_sheet(capsys: pytest.CaptureFixture[str]) -> None:
    overrides = ["model=llama3.1-8b", "scheduler=disaggregated", "cluster.decode.tensor_parallel_size=1"]
    out = printed(capsys, *overrides, "cluster.prefill.gpu=h200-sxm")
    assert "prefill: each of 4 x h200-sxm" in out
    assert "decode: each of 1 x h100-sxm" in out


@pytest.mark.parametrize("more", [[], ["ignore_capacity=true"]])
def test_a_model_that_does_not_fit_shows_the_sum_and_how_many_gpus_would_do(
    more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    big = ["model.weights_dtype=bf16", "cluster.tensor_parallel_size=1", *more]
    out = printed(capsys, *big, status=1)
    assert column(out, "KV cache  ")[1] < 0
    assert "DOES NOT FIT: 62.36 GiB short of one KV block on each GPU; tensor_parallel_size=2 holds it" in out
    assert main(["memory", *big, "cluster.tensor_parallel_size=2"]) == 0


def test_a_model_that_no_node_holds_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "model=llama3.1-405b", "gpu=l40s", "model.weights_dtype=bf16", status=1)
    assert "no number of GPUs of a node holds it" in out


def test_a_length_that_the_cache_does_not_hold_is_refused_beside_the_sheet(
    capsys: pytest.CaptureFixture[str],
) -> None:
    long = ["model.max_position_embeddings=1000000", "scheduler.max_model_len=1000000"]
    assert main(["memory", *long]) == 1
    out, err = capsys.readouterr()
    assert "Maximum concurrency for 1,000,000 tokens per request: 0.66x" in out
    assert "scheduler.max_model_len = 1000000: must be at most the" in err


def test_flags_and_their_notes(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "engine_args=--model Qwen/Qwen3-32B -tp 2 --port 8000")
    assert out.startswith("qwen3-32b, weights bf16")
    assert "engine_args without effect here: --port" in out


# ---- beside a log


def test_every_term_stands_beside_what_was_logged(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, *LOGGED, "--vllm-log", log)
    beside = out[out.index("engine.log") :]
    for label, logged in {
        "weights, GiB": 14.99,
        "KV cache, GiB": 58.11,
        "KV blocks of 16 tokens": 29751,
        "KV cache, tokens": 476016,
        "concurrency for 131,072 tokens": 3.63,
    }.items():
        simulated, told, difference, share = column(beside, label)
        assert told == logged
        assert simulated - told == pytest.approx(difference, abs=0.011)
        assert abs(share) < 0.5  # per cent
    assert "vLLM 0.19.0" in beside
    assert "To simulate as many blocks: scheduler.num_gpu_blocks_override=29751" in out


def test_a_log_of_another_engine_is_pointed_out(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "model=llama3.1-8b", "scheduler.max_model_len=4096", "--vllm-log", log)
    assert "the engine has tensor_parallel_size=1, simulated are 4" in out
    assert "the engine has max_model_len=131072, simulated are 4096" in out


def test_the_least_of_several_engines_is_taken_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = LOG.replace("DP0", "DP1").replace("476,016", "475,008")
    (tmp_path / "two.log").write_text(LOG + other)
    out = printed(capsys, *LOGGED, "--vllm-log", str(tmp_path / "two.log"))
    assert "2 engines in one log: of each figure, the one that leaves the least KV cache" in out
    assert "num_gpu_blocks_override=29688" in out


def test_what_is_adopted_is_printed_alone_and_is_an_override(
    log: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["memory", *LOGGED, "--vllm-log", log, "--adopt"]) == 0
    out, err = capsys.readouterr()
    assert out == "scheduler.num_gpu_blocks_override=29751\n"
    assert "KV blocks of 16 tokens" in err
    (pool,) = load(*LOGGED, out.strip()).deployments()
    assert pool.kv_blocks * pool.sheet.block_size == 476_016


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--adopt"], "--adopt: needs a log: --vllm-log FILE"),
        (["--vllm-log", "nowhere.log"], "No such file"),
        (["gpu=mi300x"], "there is no such option"),
        (["cluster.tensor_parallel_size=3"], "64 query heads"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_bad_input_is_refused(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", *arguments]) == 1
    assert words in capsys.readouterr().err


def test_a_log_without_blocks_has_nothing_to_adopt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "short.log"
    path.write_text("Available KV cache memory: 58.11 GiB\n")
    assert main(["memory", *LOGGED, "--vllm-log", str(path)]) == 0
    assert main(["memory", *LOGGED, "--vllm-log", str(path), "--adopt"]) == 1
    assert "tells no number of KV blocks" in capsys.readouterr().err


@pytest.mark.parametrize("adopt", [[], ["--adopt"]])
def test_more_blocks_than_there_can_be_are_not_taken_over(
    adopt: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "odd.log"
    path.write_text("GPU KV cache size: 1,600,000,000,000,000 tokens\n")
    assert main(["memory", *LOGGED, "--vllm-log", str(path), *adopt]) == 1
    out, err = capsys.readouterr()
    assert "at most 1,000,000,000 KV blocks" in err
    assert "num_gpu_blocks_override" not in out


def test_nothing_is_cut_off_on_a_narrow_terminal(
    log: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = printed(capsys, *LOGGED, "--vllm-log", log)
    assert "…" not in out


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--vllm-log FILE" in printed(capsys, "--help")
