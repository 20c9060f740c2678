"""Conversations as they are drawn: the same in every configuration, and as their distributions say."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from math import inf
from typing import Any

import numpy as np
import pytest

from servesim.check import ConfigError, check
from servesim.streams import Streams
from servesim.workload.arrivals import Burst, ClosedLoop, Constant, Poisson
from servesim.workload.lengths import Geometric, Lognormal
from servesim.workload.session import Session
from servesim.workload.sessions import Sessions
from servesim.workload.tenant import Tenant
from servesim.workload.tools import Tools
from servesim.workload.turns import Fixed
from servesim.workload.turns import Geometric as GeometricTurns
from servesim.workload.vllm_bench import VllmBench
from tests.workload.theory import SIGMAS, assert_mean

CHAT = Sessions(
    Poisson(2.0),
    Geometric(50.0, 200.0),
    GeometricTurns(4.0),
    Tools(Lognormal(700.0, 60.0)),
    system_prompt_tokens=300,
    system_prompts=5,
    system_prompt_skew=1.0,
    think_time_s=10.0,
)
AGENTS = replace(CHAT, tools=replace(CHAT.tools, calls=3.0, delay_s=2.0))


def drawn(workload: Sessions, count: int, seed: int = 0) -> list[Session]:
    return list(islice(workload.conversations(Streams(seed)), count))


@pytest.mark.parametrize(
    "other",
    [{"arrivals": ClosedLoop(3)}, {"arrivals": Poisson(9.0)}, {"max_context_tokens": 500}, {"requests": 7}],
    ids=str,
)
def test_session_i_is_the_same_at_every_rate_and_for_all_who_send(other: dict[str, Any]) -> None:
    assert drawn(AGENTS, 300) == drawn(replace(AGENTS, **other), 300)
    assert drawn(AGENTS, 30) != drawn(AGENTS, 30, seed=1)


def test_a_session_with_more_turns_goes_on_as_it_began() -> None:
    for short, long in zip(
        drawn(replace(CHAT, turns=Fixed(3)), 50), drawn(replace(CHAT, turns=Fixed(8)), 50), strict=True
    ):
        assert (short.turns, long.turns) == (3, 8)
        assert long.inputs[:3] == short.inputs
        assert long.outputs[:3] == short.outputs
        assert long.waits_s[:3] == short.waits_s


def test_a_very_long_session_goes_on_as_it_began() -> None:
    """Some turns of the longer ones come from streams of their own, and all have as many as they should."""
    turns = (500, 511, 513, 2000)
    found = [drawn(replace(CHAT, turns=Fixed(count)), 3) for count in turns]
    for each in zip(*found, strict=True):
        assert tuple(session.turns for session in each) == turns
        assert each[0].waits_s == each[3].waits_s[:500]
        assert each[2].waits_s == each[3].waits_s[:513]
        assert len(set(each[3].waits_s)) == len(each[3].waits_s)


def test_no_more_is_drawn_of_a_session_than_may_be_sent() -> None:
    """However long it were; what is drawn is the same, and its origin, however many are made at once."""
    tenants = {"a": Tenant(1), "b": Tenant(2)}
    long = replace(AGENTS, turns=Fixed(150), tenants=tenants)
    some = list(islice(long.conversations(Streams(0), 600), 270))
    assert {session.turns for session in some} > {600}
    endless = replace(long, turns=Fixed(1000), tools=replace(long.tools, calls=1e6))
    for most in (1, 3, 40):
        bound = list(islice(long.conversations(Streams(0), most), 270))
        assert [session.inputs for session in bound] == [session.inputs[:most] for session in some]
        assert [session.origin for session in bound] == [session.origin for session in some]
        assert {session.turns for session in islice(endless.conversations(Streams(0), most), 9)} == {most}


def test_a_limit_of_sessions_is_exact() -> None:
    assert len(drawn(replace(CHAT, sessions=301), 1000)) == 301


def test_system_prompts_follow_zipfs_law() -> None:
    """The k-th of n has a share of k^-s / sum of j^-s."""
    found = [each.origin.prefix[0][0] for each in drawn(CHAT, 4000)]
    weights = 1 / np.arange(1, 6)
    shares = weights / weights.sum()
    counts = np.bincount(found, minlength=5)
    assert np.all(np.abs(counts - 4000 * shares) <= SIGMAS * np.sqrt(4000 * shares * (1 - shares)))
    assert replace(CHAT, system_prompt_skew=0.0).prompt_shares.tolist() == pytest.approx([0.2] * 5)


def test_a_prompt_begins_with_its_system_prompt_and_goes_on_with_a_key_of_its_own() -> None:
    some = drawn(CHAT, 500)
    assert {key for each in some for key, _ in each.origin.prefix} == set(range(5))
    assert {end for each in some for _, end in each.origin.prefix} == {300}
    assert len({each.origin.stream for each in some} | set(range(5))) == 505
    assert [each.origin_of(3) for each in some] == [each.origin._replace(turn=3) for each in some]
    (bare,) = drawn(replace(CHAT, system_prompt_tokens=0), 1)
    assert (bare.origin.prefix, bare.system_tokens) == ((), 0)


def test_requests_per_session_are_those_of_turns_and_tools() -> None:
    """A turn with G calls, geometric from 0 with mean c: mean turns x (1 + c), by Wald's equation.

    The variance of the sum of N such turns is E[N] Var(1 + G) + Var(N) (1 + c)^2.
    """
    lengths = np.array([each.turns for each in drawn(AGENTS, 3000)], dtype=float)
    assert AGENTS.requests_per_session == 16.0
    assert_mean(lengths, 16.0, 4 * 3 * 4 + 4 * 3 * 16)


def test_tools_have_lengths_and_delays_of_their_own() -> None:
    workload = replace(
        AGENTS, turns=Fixed(1), lengths=Geometric(10.0, 500.0), think_time_s=1e6, think_time="constant"
    )
    some = drawn(workload, 2000)
    results = np.array([tokens for each in some for tokens in each.inputs[1:]], dtype=float)
    steps = np.array([tokens for each in some for tokens in each.outputs[1:]], dtype=float)
    delays_s = np.array([wait_s for each in some for wait_s in each.waits_s[1:]])
    assert_mean(results, 700.0, 700.0**2)
    assert_mean(steps, 60.0, 60.0**2)
    assert_mean(delays_s, 2.0, 4.0)
    assert_mean(np.array([float(each.inputs[0]) for each in some]), 10.0, 90.0)
    assert {each.waits_s[0] for each in some} == {1e6}


def test_thoughts_are_exponential_or_always_as_long() -> None:
    waits_s = np.array([wait_s for each in drawn(CHAT, 2000) for wait_s in each.waits_s])
    assert_mean(waits_s, 10.0, 100.0)
    assert_mean((waits_s > 20.0).astype(float), np.exp(-2), np.exp(-2) * (1 - np.exp(-2)))
    assert {wait_s for each in drawn(replace(CHAT, think_time="constant"), 9) for wait_s in each.waits_s} == {
        10
    }


def test_a_session_is_one_tenants() -> None:
    some = drawn(replace(CHAT, tenants={"a": Tenant(1), "b": Tenant(1, priority=2, slack_s=3.0)}), 100)
    assert {(each.origin.tenant, each.origin.priority, each.origin.slack_s) for each in some} == {
        (0, 0, inf),
        (1, 2, 3.0),
    }


def test_sessions_begin_as_their_arrivals_say() -> None:
    assert list(islice(replace(CHAT, arrivals=Constant(4.0)).starts_s(Streams(0)), 3)) == [0.25, 0.5, 0.75]
    assert list(replace(CHAT, arrivals=ClosedLoop(3, 6.0)).starts_s(Streams(0))) == [0.0, 2.0, 4.0]
    slow, fast = (
        list(islice(replace(CHAT, arrivals=Poisson(rate)).starts_s(Streams(0)), 9)) for rate in (1, 2)
    )
    assert slow == [2 * start_s for start_s in fast]


def test_what_does_not_go_together_is_listed() -> None:
    with pytest.raises(ConfigError, match="sessions: must be given: a burst"):
        check(replace(CHAT, arrivals=Burst(), max_context_tokens=300))
    with pytest.raises(
        ConfigError, match="system_prompt_tokens = 300: must be below max_context_tokens, 300"
    ):
        check(replace(CHAT, max_context_tokens=300))
    with pytest.raises(ConfigError, match="choose workload/arrivals=poisson or gamma for sessions"):
        check(replace(CHAT, arrivals=VllmBench(4.0)))
    with pytest.raises(ConfigError, match=r"take more than 1e\+09 s to begin"):
        check(replace(CHAT, arrivals=Poisson(1e-9), sessions=5))
    check(replace(CHAT, arrivals=Burst(), sessions=5))
