"""`servesim explain`: one step as a table and a drawing."""

import re

import pytest

from servesim import load
from servesim.cli import main
from servesim.screen.roofline import HEIGHT, MARGIN, WIDTH, roofline_lines
from servesim.screen.step import Step


def printed(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["explain", *arguments]) == 0
    return capfd.readouterr().out


def milliseconds(line: str) -> float:
    """Return the figure in front of the share of the step."""
    found = re.findall(r"(\d+\.\d{3}) +\d+\.\d%", line)[0]
    return float(found)


@pytest.mark.parametrize("arguments", [[], ["--chunk", "2048+100"], ["--batch", "0", "--chunk", "1,000"]])
@pytest.mark.parametrize("calibration", ["auto", "roofline"])
def test_the_operations_sum_to_the_step(
    capfd: pytest.CaptureFixture[str], arguments: list[str], calibration: str
) -> None:
    out = printed(capfd, f"calibration={calibration}", *arguments)
    table = out[out.index("bound by") :].splitlines()[1:]
    table = table[: table.index("FLOP/s per GPU")]
    rows = [milliseconds(line) for line in table]
    shares = [float(re.findall(r"\d +(\d+\.\d)%", line)[0]) for line in table]
    assert sum(shares[:-1]) == pytest.approx(100, abs=0.05 * len(shares))
    assert sum(rows[:-1]) == pytest.approx(rows[-1], abs=0.001 * len(rows))
    step_time = load(f"calibration={calibration}").deployments()[0].step_time
    step = {
        0: (64, 64 * 1400, []),
        1: (0, 0, [(1000, 0)]),
        2: (64, 64 * 1400, [(2048, 100)]),
    }[0 if not arguments else 1 if "0" in arguments else 2]
    assert rows[-1] == pytest.approx(1e3 * step_time.mixed(*step), abs=0.001)


@pytest.mark.parametrize("model", ["llama3.1-8b", "llama3.1-405b"])
def test_nothing_is_cut_off_on_a_narrow_terminal(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = printed(
        capfd, f"model={model}", "cluster.tensor_parallel_size=8", "cluster.replicas=1", "--batch", "256"
    )
    assert "bound by" in out
    assert "…" not in out


def test_each_pool_has_a_table(capfd: pytest.CaptureFixture[str]) -> None:
    out = printed(capfd, "scheduler=disaggregated", "cluster.prefill.gpu=h200-sxm")
    assert "on 4 x h200-sxm, prefill" in out
    assert "on 4 x h100-sxm, decode" in out


def test_the_steady_state_is_told_in_closed_form_and_simulated(capfd: pytest.CaptureFixture[str]) -> None:
    out = printed(capfd, "model=llama3.1-8b", "cluster.tensor_parallel_size=1", "--batch", "16", "--steady")
    (off,) = re.findall(r"simulated \(([+-][\d.]+)%\)", out)
    assert abs(float(off)) < 5


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("scheduler.num_gpu_blocks_override=300", "tokens of KV on average, a replica holds 4,800"),
        ("scheduler.max_num_seqs=8", "16 users, max_num_seqs is 8"),
    ],
)
def test_it_says_so_where_the_closed_form_does_not_hold_and_compares_nothing(
    capfd: pytest.CaptureFixture[str], limit: str, words: str
) -> None:
    out = printed(capfd, limit, "--batch", "16", "--steady")
    out = out[out.index("Steady state") :]
    assert "the closed form does not hold: " in out
    assert words in out
    assert "in closed form" not in out
    assert "ms simulated" in out


def notes(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    return " ".join(printed(capfd, *arguments).partition("Notes")[2].split())


def test_a_step_says_what_it_rests_on(capfd: pytest.CaptureFixture[str]) -> None:
    usual = notes(capfd)
    assert "kernels as fitted in h100-sxm-vllm (vllm 0.24.0)" in usual
    assert "vllm-0.12 (vllm 0.12.0), fitted on qwen3-32b on h100-sxm" in usual
    kinds = ("calibrated", "interpolated", "extrapolated")
    shares = [re.findall(rf"([\d.]+)% of the time is {kind}", usual) for kind in kinds]
    assert sum(float(found[0]) for found in shares if found) == pytest.approx(100, abs=0.15)
    assert re.search(r"is calibrated: \w+ [\d.]+%, ", usual)
    assert re.search(r"is extrapolated: gate_up", notes(capfd, "gpu=a100-sxm-80gb"))
    assert re.search(r"is extrapolated: .*host", notes(capfd, "--batch", "512"))
    assert "datasheet's (roofline)" in notes(capfd, "calibration=roofline")
    assert "by the datasheet" in notes(capfd, "gpu.name=mine")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--batch", "1025"], "1,025 sequences, max_num_seqs is 1,024"),
        (["scheduler=static", "--batch", "65"], "65 sequences, batch_size is 32"),
        (["--chunk", "9000"], "9,064 new tokens, max_num_batched_tokens is 8,192"),
        (["--context", "131073"], "131,073 tokens, max_model_len is 131,072"),
        (["--batch", "0", "--chunk", "100+131,000"], "131,100 tokens, max_model_len is 131,072"),
        (["scheduler.num_gpu_blocks_override=100", "--batch", "2"], "2,800 tokens, a replica holds 1,600"),
    ],
)
def test_a_step_that_no_engine_would_run_is_noted(
    capfd: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert words in notes(capfd, *arguments)
    usual = notes(capfd)
    assert not any(limit in usual for limit in ("never forms", "gets this long", "does not fit"))


def test_a_single_pool_has_no_role(capfd: pytest.CaptureFixture[str]) -> None:
    assert "llama3.1-70b (fp8) on 4 x h100-sxm: 64 decodes" in printed(capfd)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--batch", "0"], "needs decodes or a chunk"),
        (["--batch", "-1"], "--batch"),
        (["--chunk", "0+5"], "no new tokens"),
        (["--chunk", "many"], "--chunk: many is no whole number"),
        (["--batch", "1.5"], "--batch: 1.5 is no whole number"),
        (["--nonsense"], "--nonsense"),
        (["gpu=nothing"], "there is no such option"),
        (["scheduler=static", "--steady"], "needs scheduler=continuous"),
        (["--batch", "0", "--chunk", "5", "--steady"], "needs a --batch of users"),
    ],
)
def test_bad_input_is_refused(capfd: pytest.CaptureFixture[str], arguments: list[str], words: str) -> None:
    assert main(["explain", *arguments]) == 1
    assert words in capfd.readouterr().err


def test_help(capfd: pytest.CaptureFixture[str]) -> None:
    assert "--chunk NEW[+OLD]" in printed(capfd, "--help")


def test_points_of_a_drawing_are_under_the_roof() -> None:
    for calibration in ("auto", "roofline"):
        pool = load(f"calibration={calibration}").deployments()[0]
        lines = roofline_lines(pool, "fp8", Step(64, 64 * 1400, []))[1 : HEIGHT + 1]
        grid = [line[MARGIN:] for line in lines]
        assert {len(row) for row in grid} == {WIDTH}
        assert {mark for row in grid for mark in row} - {" ", "."}
        for column in zip(*grid, strict=True):
            roof = [row for row, mark in enumerate(column) if mark == "."]
            points = [row for row, mark in enumerate(column) if mark not in " ."]
            assert not (roof and points) or min(points) >= roof[0] - 1  # a row is as fine as it gets


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        (["--batch", "1000000000000"], ["--batch = 1000000000000: must be at most 100,000"]),
        (["--steady", "--batch", "10,001"], ["--batch = 10001: must be at most 10,000 with --steady"]),
        (["--chunk", "100000000"], ["--chunk = 100000000: must be at most 1,000,000"]),
        (
            ["--chunk", "600000", "--chunk", "600000+99999999", "--context", "99999999"],
            ["--chunk = 1200000: must be", "--chunk = 99999999: must be", "--context = 99999999: must be"],
        ),
        (["--batch", "1_0"], ["1_0 is no whole number"]),
        (["--batch", "\u0661"], ["\u0661 is no whole number"]),
    ],
)
def test_steps_beyond_all_engines_are_refused_at_once(
    options: list[str], lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", *options]) == 1
    complaints = capsys.readouterr().err
    assert all(line in complaints for line in lines)


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        (["workload.lengths.output=1"], "no answer in the steady part has a second token"),
        (["workload.lengths.output=5", "scheduler.max_model_len=2"], "all requests are dropped"),
    ],
)
def test_a_steady_state_without_a_second_token_says_so(
    overrides: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fixed = ["workload/lengths=fixed", "workload.lengths.input=100"]
    assert main(["explain", "--steady", "--batch", "4", *fixed, *overrides]) == 0
    assert f"- simulated: {reason}" in capsys.readouterr().out
