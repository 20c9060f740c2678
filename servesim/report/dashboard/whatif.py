"""What-ifs: scenarios that are simulated while somebody waits, one at a time, each of them once."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import pandas as pd

from servesim.check import ConfigError, Problem
from servesim.config.expansion import Expansion
from servesim.config.groups import Groups
from servesim.engine.clock import StalledError
from servesim.results.result import Result
from servesim.scenario import Scenario
from servesim.simulation import run

#: Requests from which on a run is not a what-if any more, and the seconds of wall time that one may take.
MOST_REQUESTS, MOST_S = 20_000, 15.0

#: Answers that are kept, each with 24 bytes per request.
_KEPT = 128

TIMES = ["ttft_s", "tpot_s", "e2e_s"]

Overrides = tuple[str, ...]


@dataclass(frozen=True)
class Answer:
    """What became of a what-if: its summary, or the problems that it has instead.

    ``times`` has the latencies of its requests in seconds: ``ttft_s``, ``tpot_s`` and ``e2e_s``.
    """

    overrides: Overrides
    summary: dict[str, Any] | None = None
    times: pd.DataFrame = field(default_factory=pd.DataFrame)
    problems: tuple[Problem, ...] = ()


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
        self._scenarios = Expansion(Groups.of(None))

    def ask(self, overrides: Overrides) -> Answer:
        """Return what the scenario of some overrides comes to."""
        with self._lock:
            if overrides not in self._known:
                self._known[overrides] = self._answer(overrides)
                if len(self._known) > _KEPT:
                    self._known.popitem(last=False)
            self._known.move_to_end(overrides)
            return self._known[overrides]

    def _answer(self, overrides: Overrides) -> Answer:
        scenario, refused, unfit = self._scenarios.scenario(overrides)
        if scenario is None or refused or unfit:
            return Answer(overrides, problems=(*refused, *unfit))
        try:
            result = self._run(scenario)
        except ConfigError as error:
            return Answer(overrides, problems=error.problems)
        except StalledError as error:
            return Answer(overrides, problems=(Problem("", None, str(error)),))
        return Answer(overrides, result.summary, result.requests[TIMES])

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
