"""One candidate with given numbers of replicas, tried by simulation."""

from __future__ import annotations

from servesim.frontier.candidate import Candidate, Shape
from servesim.frontier.judge import Verdict, judge
from servesim.frontier.pruning import Outlook
from servesim.frontier.splits import hopeless, splits
from servesim.frontier.traffic import Trial


class Attempt:
    """Tries a candidate with given numbers of replicas, and remembers what came of it.

    ``best`` is the smallest shape that has met the objective, else the one that came nearest.
    """

    def __init__(self, candidate: Candidate, view: Outlook, trial: Trial) -> None:
        self._candidate, self._view, self._trial = candidate, view, trial
        self._failed: list[Shape] = []
        self._tried: list[tuple[Shape, Verdict]] = []

    @property
    def runs(self) -> int:
        """Simulations so far."""
        return sum(verdict.runs for _, verdict in self._tried)

    @property
    def best(self) -> tuple[Shape, Verdict]:
        """The smallest shape that met the objective, with its verdict, or the nearest to it."""
        met = [each for each in self._tried if each[1].met]
        if met:
            return min(met, key=lambda each: sum(each[0]))
        return max(self._tried, key=lambda each: (each[1].attainment, -sum(each[0])))

    def meets(self, replicas: int) -> bool:
        """Say whether the candidate meets the objective with so many replicas, divided in some way."""
        shapes: list[Shape] = [(replicas,)]
        if self._candidate.split:
            shapes = splits(replicas, self._view.least, self._view.busy_s)
        return any(self._try(shape) for shape in shapes if not hopeless(shape, self._failed))

    def _try(self, shape: Shape) -> bool:
        verdict = judge(self._candidate, shape, self._trial)
        self._tried.append((shape, verdict))
        if not verdict.met:
            self._failed.append(shape)
        return verdict.met
