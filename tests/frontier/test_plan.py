"""The plan: as good as trying everything, whatever the number of workers, and honest about the rest."""

from functools import cache
from itertools import count
from math import inf

import pytest

from servesim.frontier.candidate import Candidate, Shape
from servesim.frontier.judge import judge
from servesim.frontier.plan import RATE_TOLERANCE, Answer, plan
from servesim.frontier.pruning import outlook
from tests.frontier.plans import TRIAL, candidates, question

MOST = 16


def told(settled: int) -> None:
    """Nobody listens."""


def shapes(candidate: Candidate, replicas: int) -> list[Shape]:
    if not candidate.split:
        return [(replicas,)]
    return [(prefill, replicas - prefill) for prefill in range(1, replicas)]


def cheapest_by_trying_all(candidate: Candidate) -> float:
    """Return the price of the fewest replicas that meet, each number and each split being tried from 1 on."""
    if outlook(candidate, TRIAL).obstacle in ("does_not_fit", "kv_too_small", "indivisible"):
        return inf
    for replicas in count(len(candidate.smallest)):
        if replicas * candidate.tensor_parallel_size > MOST:
            return inf
        if any(judge(candidate, shape, TRIAL).met for shape in shapes(candidate, replicas)):
            return candidate.usd_per_hour((replicas,))
    raise AssertionError("there is always a further number")


RATE = "workload.arrivals.rate_rps="


@cache
def answers_at(rate: str) -> list[Answer]:
    return plan(candidates(RATE + rate), question(max_gpus=MOST), 1, told)


@pytest.fixture(scope="module")
def answers() -> list[Answer]:
    return answers_at("35")


@pytest.mark.parametrize("rate", ["35", "60"])
def test_it_finds_what_trying_everything_finds(rate: str) -> None:
    """At 35 requests/s three are equally cheap; at 60 one never meets, and others cost too much."""
    found = answers_at(rate)
    prices = {candidate.label: cheapest_by_trying_all(candidate) for candidate in candidates(RATE + rate)}
    expected = sorted(prices.values())[:3]
    assert [answer.fate for answer in found[:3]] == ["meets"] * 3
    assert [answer.usd_per_hour for answer in found[:3]] == pytest.approx(expected)
    for answer in found:
        price = prices[answer.candidate.label]
        if answer.fate == "meets":
            assert answer.usd_per_hour >= price - 1e-9  # chance may let a replica more miss the target
        else:
            assert price > expected[-1]


def test_fewer_simulations_than_candidates_have_sizes(answers: list[Answer]) -> None:
    pruned = [answer for answer in answers if answer.fate in ("dearer", "unreachable")]
    assert pruned
    assert all(answer.runs == 0 and answer.verdict is None for answer in pruned)


def test_the_best_come_first_and_say_how_much_is_left(answers: list[Answer]) -> None:
    assert [answer.usd_per_hour for answer in answers[:3]] == sorted(a.usd_per_hour for a in answers[:3])
    for answer in answers[:3]:
        assert answer.headroom is not None
        assert judge(answer.candidate, answer.shape, TRIAL, answer.headroom).met
        beyond = answer.headroom * (1 + RATE_TOLERANCE)
        assert not judge(answer.candidate, answer.shape, TRIAL, beyond).met
        assert answer.limit is not None
        spare = len(answer.shape) * answer.candidate.usd_per_hour((1,))
        assert answer.usd_per_hour_with_spare == pytest.approx(answer.usd_per_hour + spare)


def test_one_replica_fewer_fails(answers: list[Answer]) -> None:
    for answer in answers[:3]:
        fewer = sum(answer.shape) - 1
        if fewer >= len(answer.shape):
            assert not any(
                judge(answer.candidate, shape, TRIAL).met for shape in shapes(answer.candidate, fewer)
            )


def test_workers_change_nothing(answers: list[Answer]) -> None:
    assert plan(candidates(RATE + "35"), question(max_gpus=MOST), 2, told) == answers


def test_progress_ends_with_every_candidate() -> None:
    heard: list[int] = []
    plan(candidates("workload.arrivals.rate_rps=2"), question(top=1), 1, heard.append)
    assert heard == sorted(heard)
    assert heard[-1] == len(candidates())


def test_where_nothing_meets_the_nearest_comes_first() -> None:
    few = candidates("workload.arrivals.rate_rps=400")
    found = plan(few, question(max_gpus=4), 1, told)
    assert found[0].fate != "meets"
    assert {answer.fate for answer in found} <= {"needs_too_many", "misses", "unreachable"}
    assert found[0].limit is not None or found[0].fate == "needs_too_many"


def test_prices_decide() -> None:
    cheap = candidates("pricing.usd_per_gpu_hour=1", schedulers=("continuous",), sizes=(1,))
    first = plan(cheap, question(top=1), 1, told)[0]
    assert first.candidate.gpu == "h100-sxm"
    assert first.usd_per_hour == first.gpus
