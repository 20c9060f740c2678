"""The running of a study, at once or round by round."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import monotonic
from typing import Any

import numpy as np

from servesim.frontier.objective import judged
from servesim.sweeps.plan import Plan
from servesim.sweeps.point import FAILED, Outcome, Point
from servesim.sweeps.search import Measured
from servesim.sweeps.store import Store
from servesim.sweeps.study import Load
from servesim.sweeps.workers import run_all

_DONE = "throughput.requests_per_s"

#: Told how many points are done, and how many there will be at most.
Progress = Callable[[int, int], None]


class Work:
    """Runs points, unless what became of them is known.

    Attributes:
        known: how many points were known from before.
        unfinished: whether going on would add to it: time was up, or a point failed and may not fail again.

    """

    def __init__(self, plan: Plan, store: Store, n_jobs: int, progress: Progress | None) -> None:
        self._plan, self._store, self._n_jobs, self._progress = plan, store, n_jobs, progress
        self._until_s: float | None = None
        self._done = 0
        self.known = 0
        self.unfinished = False

    def outcomes(self) -> list[tuple[Point, Outcome]]:
        """Run what is missing, and return every point in grid order with what became of it.

        Points that a limit in seconds left out are missing.
        """
        study = self._plan.study
        points = self._plan.points([(number, None) for number in range(len(self._plan.grid.configurations))])
        if study.load is None:
            self.run(points)
        else:
            points = self.search(points, study.load)
        return [(point, outcome) for point in points if (outcome := self.outcome(point)) is not None]

    def outcome(self, point: Point) -> Outcome | None:
        """Return what became of a point; None where it has not been run."""
        return point.outcome or self._store.get(point.hash)

    def run(self, points: Sequence[Point]) -> None:
        """Run the points that nothing is known of; equal scenarios are run once."""
        missing = {point.hash: point.scenario for point in points if self.outcome(point) is None}
        self.known += sum(point.outcome is None and point.hash not in missing for point in points)
        self._tell(len(points) - len(missing))
        for key, outcome, lasting in run_all(list(missing.items()), self._n_jobs, self._until_s):
            self._store.add(key, outcome, lasting)
            self.unfinished |= not lasting
            self._tell(1)

    def search(self, points: Sequence[Point], load: Load) -> list[Point]:
        """Let every configuration find its loads, round by round; return all points, in grid order.

        What is proposed in a round depends on the figures of the rounds before it alone. A load that its key
        does not take is told to have failed. However short the time, one point is run.
        """
        searches = self._plan.searches(points, load.key, load.points)
        examples = {point.configuration: point for point in points}
        self._until_s = None if load.seconds is None else monotonic() + load.seconds
        found: list[Point] = []
        while wanted := [(number, value) for number, each in searches.items() for value in each.propose()]:
            if found and self._until_s is not None and monotonic() >= self._until_s:
                self.unfinished = True
                break
            for number, value in wanted:
                if not self._plan.takes(examples[number], value):
                    searches[number].tell(value, None)
            batch = self._plan.points(
                [place for place in wanted if self._plan.takes(examples[place[0]], place[1])]
            )
            self.run(batch)
            found += batch
            for place, outcomes in self._by_load(batch).items():
                searches[place[0]].tell(place[1], _measured(outcomes))
        order = {seed: rank for rank, seed in enumerate(self._plan.study.each_seed)}
        return sorted(found, key=lambda point: (point.configuration, point.load, order[point.seed]))

    def _by_load(self, points: Sequence[Point]) -> dict[tuple[int, float], list[Outcome]]:
        by_load: dict[tuple[int, float], list[Outcome]] = {}
        for point in points:
            outcome = self.outcome(point)
            if outcome is not None and point.load is not None:
                by_load.setdefault((point.configuration, point.load), []).append(outcome)
        return by_load

    def _tell(self, points: int) -> None:
        self._done += points
        if self._progress is not None:
            self._progress(self._done, max(self._plan.most_points, self._done))


def _measured(outcomes: Sequence[Outcome]) -> Measured | None:
    """Return what the seeds say of one load together: means, and whether most of them are saturated.

    Whether they meet the SLO is judged by the requests of all seeds in one heap; where nobody can tell, the
    search goes on as if they did not.
    """
    rows = [outcome.figures for outcome in outcomes if outcome.status != FAILED]
    if not rows:
        return None
    done, stay_s = (_mean(row.get(name) for row in rows) for name in (_DONE, "latency.e2e_s.mean"))
    verdict = judged(rows, len(rows) == len(outcomes))
    return Measured(
        saturated=2 * sum(bool(row.get("saturated")) for row in rows) >= len(rows),
        throughput=done,
        tail_s=_mean(row.get("latency.ttft_s.p99") for row in rows),
        good=verdict.attainment,
        meets=None if verdict.attainment is None else verdict.meets is True,
        under_way=None if done is None or stay_s is None else done * stay_s,
    )


def _mean(values: Iterator[Any]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
