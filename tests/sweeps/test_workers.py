"""Where points run."""

import os
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from servesim import load
from servesim.sweeps.interruption import left_to_this_process
from servesim.sweeps.workers import run_all

SCENARIO = load("model=llama3.1-8b", "calibration=roofline", "workload.requests=20")


class Killer:
    """Ends the process that unpickles it, as the kernel does when memory runs out."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os._exit, (1,)


@pytest.mark.parametrize("workers", [0, 1, 2, -1])
def test_every_job_ends_once(workers: int) -> None:
    jobs = [(name, SCENARIO) for name in "abcde"]
    done = list(run_all(jobs, workers, None))
    assert sorted(key for key, _, _ in done) == list("abcde")
    assert all(outcome.status == "clean" and lasting for _, outcome, lasting in done)
    assert len({str(outcome) for _, outcome, _ in done}) == 1


def test_a_point_that_ends_its_process_does_not_stop_the_others() -> None:
    jobs: list[Any] = [("a", SCENARIO), ("killer", Killer()), ("b", SCENARIO), ("c", SCENARIO)]
    done = {key: (outcome, lasting) for key, outcome, lasting in run_all(jobs, 2, None)}
    assert set(done) == {"a", "b", "c", "killer"}
    assert "was killed" in str(done["killer"][0].error)
    assert not done["killer"][1]
    assert all(done[key][0].status == "clean" for key in "abc")


@pytest.mark.parametrize("workers", [1, 2])
def test_one_job_alone_begins_when_time_is_up(workers: int) -> None:
    late_s = time.monotonic() - 1
    assert [key for key, *_ in run_all([("a", SCENARIO), ("b", SCENARIO)], workers, late_s)] == ["a"]


def test_no_jobs_are_no_work() -> None:
    assert list(run_all([], -1, None)) == []


def test_ctrl_c_is_for_this_process_and_not_for_those_it_starts() -> None:
    """A child that is started meanwhile has it blocked; this process has it as before, afterwards."""
    told = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    with left_to_this_process():
        blocked = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    usual = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert (blocked.stdout, usual.stdout) == ("True\n", "False\n")
    with pytest.raises(KeyboardInterrupt), left_to_this_process():
        signal.raise_signal(signal.SIGINT)
