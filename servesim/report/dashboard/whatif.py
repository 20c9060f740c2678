"""What-ifs: scenarios that are simulated while somebody waits, one at a time, each of them once."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from functools import lru_cache
from threading import Lock
from typing import Any

import pandas as pd

from servesim.check import ConfigError, Problem
from servesim.config.loading import load
from servesim.engine.clock import StalledError
from servesim.report.dashboard.state import RATE, written
from servesim.results.result import Result
from servesim.scenario import Scenario
from servesim.simulation import run
from servesim.workload.arrivals import Poisson
from servesim.workload.synthetic import Synthetic

#: Requests from which on a run is not a what-if any more, and the seconds of wall time that one may take.
MOST_REQUESTS, MOST_S = 20_000, 15.0

#: Answers that are kept, each with 24 bytes per request.
_KEPT = 128

TIMES = ["ttft_s", "tpot_s", "e2e_s"]

Overrides = tuple[str, ...]


@dataclass(frozen=True)
class Answer:
    """What became of a what-if: its summary, or the problems that it has instead.

    ``times`` has the latencies of its requests in seconds (``ttft_s``, ``tpot_s``, ``e2e_s``), and ``took_s``
    is what composing and simulating it took.
    """

    overrides: Overrides
    summary: dict[str, Any] | None = None
    times: pd.DataFrame = field(default_factory=pd.DataFrame)
    problems: tuple[Problem, ...] = ()
    took_s: float = 0.0


class _TooSlowError(Exception):
    """The time is up; it holds the requests that were sent by then."""


class WhatIfs:
    """Runs scenarios, and remembers what they came to.

    Whoever asks waits for those who asked before: the simulator computes on one core, and Hydra composes one
    configuration at a time.
    """

    def __init__(self, most_requests: int = MOST_REQUESTS, most_s: float = MOST_S) -> None:
        self._most_requests = most_requests
        self._most_s = most_s
        self._lock = Lock()
        self._known: OrderedDict[Overrides, Answer] = OrderedDict()
        self._scenario = lru_cache(maxsize=_KEPT)(lambda overrides: load(*overrides))

    def ask(self, overrides: Overrides) -> Answer:
        """Return what the scenario of some overrides comes to."""
        with self._lock:
            return self._remembered(overrides, overrides, None)

    def ask_at(self, overrides: Overrides, rate_rps: float) -> Answer:
        """Return what the same scenario comes to at another rate."""
        with self._lock:
            return self._remembered(at_rate(overrides, rate_rps), overrides, rate_rps)

    def _remembered(self, key: Overrides, overrides: Overrides, rate_rps: float | None) -> Answer:
        if key not in self._known:
            self._known[key] = self._answer(key, overrides, rate_rps)
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)
        self._known.move_to_end(key)
        return self._known[key]

    def _answer(self, key: Overrides, overrides: Overrides, rate_rps: float | None) -> Answer:
        started_s = time.perf_counter()
        try:
            scenario = self._scenario(overrides)
            result = self._run(scenario if rate_rps is None else _with_rate(scenario, rate_rps))
        except ConfigError as error:
            return Answer(key, problems=error.problems)
        except StalledError as error:
            return Answer(key, problems=(Problem("", None, str(error)),))
        times = result.requests[TIMES]
        return Answer(key, result.summary, times, took_s=time.perf_counter() - started_s)

    def _run(self, scenario: Scenario) -> Result:
        """Run a scenario that is small enough to wait for.

        Raises:
            ConfigError: it is not.
        """
        requests = scenario.workload.requests
        by_command = "its command runs it without the dashboard"
        if requests is not None and requests > self._most_requests:
            message = f"a what-if has at most {self._most_requests:,} requests; {by_command}"
            raise ConfigError([Problem("workload.requests", requests, message)])
        until = time.monotonic() + self._most_s

        def tell(sent: int) -> None:
            if time.monotonic() > until:
                raise _TooSlowError(sent)

        try:
            return run(scenario, progress=tell)
        except _TooSlowError as error:
            message = f"stopped after {self._most_s:g} s, with {error.args[0]:,} requests sent; {by_command}"
            raise ConfigError([Problem("", None, message)]) from error


def at_rate(overrides: Overrides, rate_rps: float) -> Overrides:
    """Return overrides with another rate."""
    return (*(text for text in overrides if not text.startswith(f"{RATE}=")), f"{RATE}={written(rate_rps)}")


def _with_rate(scenario: Scenario, rate_rps: float) -> Scenario:
    workload = scenario.workload
    assert isinstance(workload, Synthetic)
    return replace(scenario, workload=replace(workload, arrivals=Poisson(rate_rps)))
