"""The study of speed runs from end to end and prints all its rows; how fast it all is, it only tells."""

import importlib.util
import os
import subprocess
import sys

import pytest

from tests.shared import ROOT

if not (ROOT / "experiments" / "speed").is_dir():
    pytest.skip("the studies come with a clone only", allow_module_level=True)

REQUESTS = 100


def study(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "experiments.speed", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


def rows_of(text: str) -> dict[str, list[str]]:
    """Return the cells of each row of the printed tables, by the first of them."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {first: others for first, *others in rows if set(first) != {"-"}}


def number(cell: str) -> float:
    return float(cell.replace(",", ""))


def test_every_row_is_printed():
    from experiments.speed.cases import CASES

    done = study("--requests", str(REQUESTS), "--repeat", "1")
    assert done.returncode == 0, done.stderr
    rows = rows_of(done.stdout)
    for case in CASES:
        requests, median, best, *_, peak_mb = map(number, rows[case.name])
        assert requests == case.volume * REQUESTS
        assert best == median > 0
        assert 10 < peak_mb < 1000
    for size in ("1", "50", "500", "5,000"):
        assert number(rows[size][0]) > 0
    if importlib.util.find_spec("sched_sim"):
        assert "times as fast" in done.stdout
    else:
        assert "sched-sim is not installed" in done.stdout


def test_an_unknown_case_is_refused():
    done = study("--only", "tight", "everything")
    assert done.returncode == 2
    assert "unknown: everything; there are one30, " in done.stderr


def test_load_is_a_share_of_what_all_replicas_can_do():
    from experiments.speed.cases import CASES

    [hundred] = (case for case in CASES if case.units == 100)
    assert "cluster.replicas=100" in hundred.overrides(30.0)
    assert "workload.arrivals.rate_rps=2400.0" in hundred.overrides(30.0)
