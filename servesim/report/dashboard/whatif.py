"""What-ifs: scenarios that are simulated while somebody waits, one at a time, each of them once."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import floor
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
from servesim.workload.replay import Replay
from servesim.workload.sessions import Sessions
from servesim.workload.synthetic import DEFAULT_REQUESTS, Synthetic
from servesim.workload.trace import Trace

#: The most requests and tokens (of prompts and outputs) of a what-if, and the seconds that sending may take.
MOST_REQUESTS, MOST_TOKENS, MOST_S = 10_000, 3e7, 10.0

#: Answers that are kept, each with 40 bytes per request.
_KEPT = 128

_COLUMNS = ["ttft_s", "tpot_s", "e2e_s", "tenant", "priority"]

Overrides = tuple[str, ...]

_BY_COMMAND = "its command runs it without the dashboard"


@dataclass(frozen=True)
class Answer:
    """What became of a what-if: its summary, or the problems that it has instead.

    ``times`` has the latencies of its completed requests in seconds, ``ttft_s``, ``tpot_s`` and ``e2e_s``,
    and whose they are: ``tenant`` and ``priority``.
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
        built = self._scenarios.scenario(overrides)
        if built.scenario is None or built.refused or built.unfit:
            return Answer(overrides, problems=(*built.refused, *built.unfit))
        try:
            result = self._run(built.scenario)
        except ConfigError as error:
            return Answer(overrides, problems=error.problems)
        except StalledError as error:
            return Answer(overrides, problems=(Problem("", None, str(error)),))
        completed = result.requests[result.requests.e2e_s.notna()]
        return Answer(overrides, result.summary, completed[_COLUMNS])

    def _run(self, scenario: Scenario) -> Result:
        """Run a scenario that is small enough to wait for.

        Raises:
            ConfigError: it is not.
        """
        found = list(self._too_much(scenario.workload))
        if found:
            raise ConfigError(found)
        until = time.monotonic() + self._most_s

        def tell(sent: int) -> None:
            if time.monotonic() > until:
                raise _TooSlowError(sent)

        try:
            return run(scenario, progress=tell)
        except _TooSlowError as error:
            message = f"stopped after {self._most_s:g} s, with {error.args[0]:,} requests sent; {_BY_COMMAND}"
            raise ConfigError([Problem("", None, message)]) from error

    def _too_much(self, workload: Synthetic | Sessions | Trace | Replay) -> Iterator[Problem]:
        """Yield why a workload is more than a what-if should wait for."""
        requests = workload.requests or DEFAULT_REQUESTS
        if requests > self._most_requests:
            message = f"a what-if has at most {self._most_requests:,} requests; {_BY_COMMAND}"
            yield Problem("workload.requests", requests, message)
        elif (
            isinstance(workload, Synthetic)
            and (tokens := requests * sum(workload.lengths.mean)) > MOST_TOKENS
        ):
            message = f"{tokens:,.0f} tokens; a what-if has at most {MOST_TOKENS:,.0f}: send "
            message += f"{floor(requests * MOST_TOKENS / tokens):,} requests, or {_BY_COMMAND}"
            yield Problem("workload", None, message)
