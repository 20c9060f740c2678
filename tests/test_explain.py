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
    rows = [milliseconds(line) for line in table[: table.index("FLOP/s per GPU")]]
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


def test_it_says_so_where_the_closed_form_does_not_hold(capfd: pytest.CaptureFixture[str]) -> None:
    few = ["scheduler.num_gpu_blocks_override=300", "--batch", "16", "--steady"]
    assert "the closed form does not hold" in printed(capfd, *few)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--batch", "0"], "needs decodes or a chunk"),
        (["--batch", "-1"], "--batch"),
        (["--chunk", "0+5"], "no new tokens"),
        (["--chunk", "many"], "--chunk"),
        (["--nonsense"], "--nonsense"),
        (["gpu=nothing"], "not modelled"),
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
