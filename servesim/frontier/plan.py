"""The cheapest configurations that meet an objective: branch and bound over the candidates.

Closed forms leave out what can never do and say what the rest cost at the least; in that order the rest are
sized by simulation, a few at a time, for as long as they may still be among the cheapest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from math import inf
from typing import Any, Literal

from joblib import Parallel, delayed

from servesim.check import ConfigError, Problem
from servesim.frontier.attempt import Attempt
from servesim.frontier.candidate import Candidate, Shape
from servesim.frontier.judge import Verdict, judge
from servesim.frontier.limits import Limit, limit
from servesim.frontier.pruning import Obstacle, Outlook, outlook
from servesim.frontier.search import fewest, highest
from servesim.frontier.traffic import STAYS, Trial
from servesim.simulation import run

#: Candidates that are sized at a time, so that the answer does not depend on the number of workers.
ROUND = 4
#: How closely the highest rate is told, as a share of it.
RATE_TOLERANCE = 0.02

#: What became of a candidate: it ``meets`` the objective, or it met an obstacle. By the bounds it needs more
#: GPUs or replicas than allowed (``needs_too_many``), or costs more than the best (``dearer``). As simulated
#: it misses the objective with all that is allowed (``misses``), or until it costs more than the best
#: (``outbid``).
Fate = Obstacle | Literal["meets", "needs_too_many", "dearer", "misses", "outbid"]

#: Told how many candidates are settled so far.
Tell = Callable[[int], None]


@dataclass(frozen=True)
class Question:
    """What is allowed, and how it is found out.

    ``max_replicas`` and ``max_gpus`` are of one configuration, both pools together; ``top`` is how many of
    the cheapest are wanted.
    """

    trial: Trial
    max_replicas: int
    max_gpus: int
    top: int

    def most_replicas(self, candidate: Candidate, most_usd: float = inf) -> int:
        """Return how many replicas are allowed of a candidate, and cost no more than ``most_usd`` an hour."""
        allowed = min(self.max_replicas, self.max_gpus // candidate.tensor_parallel_size)
        return allowed if most_usd == inf else min(allowed, candidate.affordable(most_usd))


@dataclass(frozen=True)
class Answer:
    """What is known of a candidate.

    Attributes:
        fate: what became of it; None while that is open.
        outlook: what the closed forms said.
        shape: the replicas that ``verdict`` is of, else the fewest that the bounds allow.
        verdict: what the simulations of that many said.
        runs: simulations made for it.
        headroom: the highest rate found to meet the objective / the rate asked for; only of the best.
        limit: what gives way just beyond that rate; where nothing meets, in the nearest as it is.
    """

    candidate: Candidate
    fate: Fate | None
    outlook: Outlook
    shape: Shape
    verdict: Verdict | None = None
    runs: int = 0
    headroom: float | None = None
    limit: Limit | None = None

    @property
    def gpus(self) -> int:
        """GPUs of all replicas."""
        return self.candidate.gpus(self.shape)

    @property
    def usd_per_hour(self) -> float:
        """What an hour of them costs."""
        return self.candidate.usd_per_hour(self.shape)

    @property
    def usd_per_hour_with_spare(self) -> float:
        """What an hour costs with one replica to spare in each pool."""
        return self.candidate.usd_per_hour(tuple(replicas + 1 for replicas in self.shape))

    @property
    def usd_per_million_output_tokens(self) -> float | None:
        """What a million output tokens cost under the traffic asked for."""
        if self.verdict is None or not self.verdict.output_tokens_per_s > 0:
            return None
        return 1e6 * self.usd_per_hour / (3600 * self.verdict.output_tokens_per_s)

    @property
    def order(self) -> tuple[float, int, float, str]:
        """What answers are sorted by: dollars per hour, GPUs, dollars with a replica to spare, names."""
        usd, with_spare = round(self.usd_per_hour, 9), round(self.usd_per_hour_with_spare, 9)
        return usd, self.gpus, with_spare, self.candidate.label


def plan(candidates: Sequence[Candidate], question: Question, jobs: int, tell: Tell) -> list[Answer]:
    """Return an answer for each candidate: those that meet first, the cheapest of them first.

    The first ``top`` have headroom and limit; where none meets, the nearest comes first and has a limit.
    Nothing but the time it takes depends on ``jobs``, the number of processes (-1: one per core).

    Raises:
        ConfigError: the traffic is too dense to simulate, and the bounds alone do not decide.

    """
    with Parallel(n_jobs=jobs, return_as="generator") as workers:

        def each(task: Callable[..., Answer], *columns: Iterable[Any]) -> Iterator[Answer]:
            yield from workers(delayed(task)(*row) for row in zip(*columns, strict=True))

        settled, waiting = _divided(each(_seen, candidates, repeat(question, len(candidates))))
        tell(len(settled))
        if waiting and not question.trial.long_enough:
            raise ConfigError([_too_dense(question.trial)])
        while waiting:
            most_usd = _price_to_beat(settled, question.top)
            settled += [replace(answer, fate="dearer") for answer in waiting if _exceeds(answer, most_usd)]
            waiting = [answer for answer in waiting if not _exceeds(answer, most_usd)]
            now, waiting = waiting[:ROUND], waiting[ROUND:]
            for answer in each(_sized, now, repeat(question, len(now)), repeat(most_usd, len(now))):
                settled.append(answer)
                tell(len(settled))
        tell(len(settled))
        ranked = sorted(settled, key=_rank)
        best = [answer for answer in ranked if answer.fate == "meets"][: question.top] or ranked[:1]
        return [*each(_explained, best, repeat(question, len(best))), *ranked[len(best) :]]


def _too_dense(trial: Trial) -> Problem:
    under_way = trial.at_a_time / STAYS
    message = (
        f"so dense that {under_way:,.0f} requests are under way at a time, too many to simulate; "
        "plan for a part of the rate and for as large a part of --max-gpus"
    )
    return Problem("workload.arrivals.rate_rps", None, message)


def _divided(answers: Iterable[Answer]) -> tuple[list[Answer], list[Answer]]:
    """Return the answers that are settled, and the others in order of the least that they cost."""
    known = list(answers)
    waiting = [answer for answer in known if answer.fate is None]
    return [answer for answer in known if answer.fate], sorted(waiting, key=lambda answer: answer.order)


def _price_to_beat(settled: Sequence[Answer], top: int) -> float:
    """Return the price of the last of the best, or infinity while they are fewer than wanted."""
    prices = sorted(answer.usd_per_hour for answer in settled if answer.fate == "meets")
    return prices[top - 1] if len(prices) >= top else inf


def _exceeds(answer: Answer, most_usd: float) -> bool:
    return answer.usd_per_hour > most_usd * (1 + 1e-9)


def _rank(answer: Answer) -> tuple[Any, ...]:
    """Sort what meets by price, then what was tried by attainment, then the rest by what it could attain."""
    if answer.fate == "meets":
        return 0, *answer.order
    if answer.fate == "misses" and answer.verdict is not None:
        return 1, -answer.verdict.attainment, *answer.order
    if answer.fate in ("needs_too_many", "dearer", "outbid"):
        return 2, *answer.order
    return 3, -answer.outlook.attainable, *answer.order


# ---- the tasks of a worker


def _seen(candidate: Candidate, question: Question) -> Answer:
    """Return what the closed forms say of a candidate."""
    view = outlook(candidate, question.trial)
    shape = view.least or candidate.smallest
    fate: Fate | None = view.obstacle
    if fate is None and sum(shape) > question.most_replicas(candidate):
        fate = "needs_too_many"
    return Answer(candidate, fate, view, shape)


def _sized(answer: Answer, question: Question, most_usd: float) -> Answer:
    """Return a candidate with the fewest replicas that meet the objective and cost at most ``most_usd``."""
    most = question.most_replicas(answer.candidate, most_usd)
    attempt = Attempt(answer.candidate, answer.outlook, question.trial)
    replicas = fewest(attempt.meets, sum(answer.shape), most)
    shape, verdict = attempt.best
    fate: Fate = "meets" if replicas is not None else "misses"
    if replicas is None and most < question.most_replicas(answer.candidate):
        fate = "outbid"
    return replace(answer, fate=fate, shape=shape, verdict=verdict, runs=attempt.runs)


def _explained(answer: Answer, question: Question) -> Answer:
    """Return an answer with its headroom, and what gives way beyond it; or why it misses the objective."""
    if answer.verdict is None:
        return answer
    candidate, shape, trial = answer.candidate, answer.shape, question.trial
    verdicts = {1.0: answer.verdict}

    def meets(factor: float) -> bool:
        verdicts[factor] = judge(candidate, shape, trial, factor)
        return verdicts[factor].met

    headroom, beyond = None, 1.0
    if answer.fate == "meets":
        headroom, beyond = highest(meets, 1.0, answer.outlook.rate_factor(shape), RATE_TOLERANCE)
    scenario = candidate.tried(shape, trial, verdicts[beyond].weakest_seed, beyond)
    return replace(
        answer,
        headroom=headroom,
        limit=limit(scenario, run(scenario)),
        runs=answer.runs + sum(verdict.runs for verdict in verdicts.values()) - answer.verdict.runs + 1,
    )
