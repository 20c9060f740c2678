"""Conversations in front of any service: what is sent when, how long it is, and how it all ends."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import islice, pairwise
from math import inf, isnan

import numpy as np
import pytest

from servesim.cluster.conversations import Conversations
from servesim.cluster.disaggregated import Disaggregated
from servesim.engine.clock import EARLY_S
from servesim.engine.continuous import Continuous
from servesim.engine.log import COMPLETED, DROPPED
from servesim.engine.static import Static
from servesim.streams import Streams
from servesim.workload.arrivals import Burst, ClosedLoop, Constant, Poisson
from servesim.workload.client import Client
from servesim.workload.lengths import Fixed, Geometric
from servesim.workload.session import Session
from servesim.workload.sessions import Sessions
from servesim.workload.tools import Tools
from servesim.workload.turns import Fixed as FixedTurns
from servesim.workload.turns import Geometric as GeometricTurns
from tests.costs import AffineStepTime, constant_step
from tests.serving import Row, Run, Service
from tests.workload.theory import SIGMAS

SERVICES = {
    "continuous": Service(Continuous(max_num_seqs=6, max_num_batched_tokens=64), kv_blocks=90, replicas=2),
    "static": Service(Static(batch_size=4, batch_timeout_s=0.5), replicas=2),
    "disaggregated": Service(Disaggregated(max_num_seqs=6), decode_replicas=2, latency_s=0.004),
}
CHAT = Sessions(
    Poisson(3.0),
    Geometric(30.0, 12.0),
    GeometricTurns(3.0),
    Tools(Fixed(50, 3), calls=0.7, delay_s=0.3),
    system_prompt_tokens=40,
    system_prompts=3,
    think_time_s=2.0,
    sessions=60,
)
USERS = replace(CHAT, arrivals=ClosedLoop(7, ramp_up_s=3.0, think_time_s=1.0))
#: An answer of n tokens takes n seconds, whoever else is served.
CLOCKWORK = Service(step_time=constant_step(1.0))
ALIKE = Sessions(
    ClosedLoop(1, think_time_s=3.0),
    Fixed(10, 2),
    FixedTurns(3),
    Tools(Fixed(1, 1)),
    system_prompt_tokens=7,
    think_time_s=5.0,
    think_time="constant",
    sessions=4,
)


def ends(run: Run) -> tuple[int, ...]:
    """Return begun, completed, without room, failed and unfinished sessions."""
    assert isinstance(run.client, Conversations)
    counted = run.client.ends
    return (counted.begun, counted.completed, counted.context_full, counted.failed, counted.unfinished)


def by_session(run: Run) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = defaultdict(list)
    for row in run.by_id:
        found[int(row["session"])].append(row)
    return found


def planned(workload: Sessions, count: int) -> list[Session]:
    return list(islice(workload.conversations(Streams(0)), count))


@pytest.mark.parametrize("workload", [CHAT, USERS], ids=["open", "users"])
@pytest.mark.parametrize("kind", SERVICES)
@pytest.mark.parametrize("api_time_s", [0.0, 0.07])
def test_turns_follow_each_other_as_they_were_drawn(kind: str, workload: Sessions, api_time_s: float) -> None:
    """The next one is sent a wait after the last answer, with all that was said so far and the new input."""
    run = replace(SERVICES[kind], client=Client(api_time_s=api_time_s)).serve(workload)
    sessions = planned(workload, 60)
    assert ends(run) == (60, 60, 0, 0, 0)
    assert {int(row["status"]) for row in run.requests} == {COMPLETED}
    for number, rows in by_session(run).items():
        drawn = sessions[number]
        assert [row["turn"] for row in rows] == list(range(drawn.turns))
        assert [row["output_tokens"] for row in rows] == drawn.outputs
        assert rows[0]["input_tokens"] == 40 + drawn.inputs[0]
        for turn, (last, row) in enumerate(pairwise(rows), start=1):
            grown = last["input_tokens"] + last["output_tokens"] + drawn.inputs[turn]
            assert row["input_tokens"] == grown
            assert row["sent_s"] - last["finished_s"] == pytest.approx(drawn.waits_s[turn], abs=1e-9)
            assert row["arrived_s"] - row["sent_s"] == pytest.approx(api_time_s, abs=1e-9)


@pytest.mark.parametrize("retries", [0, 1])
@pytest.mark.parametrize("workload", [CHAT, USERS], ids=["open", "users"])
def test_no_turn_vanishes_with_a_session_that_fails(workload: Sessions, retries: int) -> None:
    """Those behind a request that timed out are never sent, and are counted."""
    run = replace(SERVICES["continuous"], client=Client(timeout_s=0.2, max_retries=retries)).serve(workload)
    begun, completed, full, failed, unfinished = ends(run)
    assert (begun, full, unfinished) == (60, 0, 0)
    assert failed == begun - completed > 5
    sent = sum(row["attempt"] == 0 for row in run.requests)
    assert isinstance(run.client, Conversations)
    given_up = run.client.ends.turns_given_up
    assert sent + given_up == sum(each.turns for each in planned(workload, 60)) > sent


@pytest.mark.parametrize("workload", [CHAT, USERS], ids=["open", "users"])
def test_requests_are_numbered_in_order_of_sending(workload: Sessions) -> None:
    run = SERVICES["continuous"].serve(workload)
    rows = run.by_id
    assert [row["request_id"] for row in rows] == list(range(len(rows)))
    assert all(a["sent_s"] <= b["sent_s"] + 2 * EARLY_S for a, b in pairwise(rows))


def test_the_conversations_are_the_same_whoever_serves_them() -> None:
    spoken = [
        {
            number: [(row["input_tokens"], row["output_tokens"]) for row in rows]
            for number, rows in by_session(SERVICES[kind].serve(replace(CHAT, arrivals=arrivals))).items()
        }
        for kind, arrivals in (
            ("continuous", Poisson(3.0)),
            ("static", Poisson(30.0)),
            ("static", ClosedLoop(2)),
        )
    ]
    assert spoken[0] == spoken[1] == spoken[2]


def test_a_users_day_goes_like_clockwork() -> None:
    """Three answers of 2 s, two thoughts of 5 s, and a rest of 3 s before the next session."""
    run = CLOCKWORK.serve(ALIKE)
    starts_s = [0.0, 19.0, 38.0, 57.0]
    sent_s = [start_s + turn_s for start_s in starts_s for turn_s in (0.0, 7.0, 14.0)]
    assert [row["sent_s"] for row in run.by_id] == pytest.approx(sent_s, abs=1e-6)
    assert [row["input_tokens"] for row in run.by_id] == [17, 29, 41] * 4
    assert isinstance(run.client, Conversations)
    assert run.client.ends.durations_s.tolist() == pytest.approx([16.0] * 4, abs=1e-6)
    assert run.client.ends.requests.tolist() == [3] * 4


@pytest.mark.parametrize("users", [1, 4, 7])
def test_no_more_sessions_go_on_than_there_are_users(users: int) -> None:
    run = SERVICES["continuous"].serve(replace(CHAT, arrivals=ClosedLoop(users)))
    spans = [(rows[0]["sent_s"], rows[-1]["finished_s"]) for rows in by_session(run).values()]
    steps = sorted([(start_s + 1e-6, 1) for start_s, _ in spans] + [(end_s, -1) for _, end_s in spans])
    assert max(np.cumsum([step for _, step in steps])) == users


def test_requests_come_at_the_rate_of_sessions_times_their_turns() -> None:
    """In the steady half of the sending: lambda E[N] T, of variance lambda E[N^2] T, a compound count."""
    workload = replace(CHAT, arrivals=Poisson(5.0), tools=Tools(Fixed(1, 1)), sessions=None, duration_s=400.0)
    run = Service(step_time=constant_step(0.001)).serve(workload)
    sent_s = run.column("sent_s")
    count = int(((sent_s >= 200.0) & (sent_s < 400.0)).sum())
    assert abs(count - 5 * 3 * 200) <= SIGMAS * (5 * (6 + 9) * 200) ** 0.5
    assert sent_s.max() < 400.0


@pytest.mark.parametrize("workload", [CHAT, USERS], ids=["open", "users"])
@pytest.mark.parametrize("requests", [1, 17, 100])
def test_requests_are_counted_exactly(workload: Sessions, requests: int) -> None:
    run = SERVICES["continuous"].serve(replace(workload, requests=requests))
    assert len(run.requests) == requests
    begun, completed, _, _, unfinished = ends(run)
    assert begun == completed + unfinished == len(by_session(run))
    assert run.client.remaining() == 0


@pytest.mark.parametrize("workload", [CHAT, USERS], ids=["open", "users"])
@pytest.mark.parametrize("horizon_s", [0.0, 0.5, 3.0, 11.0, 30.0])
@pytest.mark.parametrize("api_time_s", [0.0, 0.4])
def test_a_horizon_loses_no_turn(workload: Sessions, horizon_s: float, api_time_s: float) -> None:
    """Each is written down, or its time has not come."""
    service = replace(SERVICES["continuous"], client=Client(api_time_s=api_time_s))
    run = service.serve(workload, horizon_s=horizon_s)
    whole = sum(session.turns for session in planned(workload, 60))
    assert len(run.requests) == run.cluster.injected
    assert len(run.requests) + run.client.remaining() == whole
    counted = service.serve(replace(workload, sessions=None, requests=50), horizon_s=horizon_s)
    assert len(counted.requests) + counted.client.remaining() == 50


def test_a_conversation_ends_before_a_prompt_that_is_too_long() -> None:
    """17, 29 and 41 tokens: of 30 at the most, the third is not sent, and the user goes on to the next."""
    run = CLOCKWORK.serve(replace(ALIKE, max_context_tokens=30))
    assert [row["input_tokens"] for row in run.by_id] == [17, 29] * 4
    assert ends(run) == (4, 0, 4, 0, 0)
    assert [row["sent_s"] for row in run.by_id][2] == pytest.approx(9.0 + 3.0, abs=1e-6)


def test_the_engines_own_limit_ends_it_too_while_it_leaves_room_for_an_answer() -> None:
    """With 42 tokens in all, 41 of the prompt leave room for one of the answer; with 41 they do not."""
    tight, tighter = (replace(CLOCKWORK, max_model_len=tokens).serve(ALIKE) for tokens in (42, 41))
    assert [row["output_tokens"] for row in tight.by_id] == [2, 2, 1] * 4
    assert ends(tight) == (4, 4, 0, 0, 0)
    assert [row["input_tokens"] for row in tighter.by_id] == [17, 29] * 4
    assert ends(tighter) == (4, 0, 4, 0, 0)


def test_a_request_that_is_dropped_ends_its_session() -> None:
    run = replace(CLOCKWORK, max_model_len=17).serve(ALIKE)
    assert [row["status"] for row in run.requests] == [DROPPED] * 4
    assert all(isnan(row["finished_s"]) for row in run.requests)
    assert ends(run) == (4, 0, 0, 4, 0)


@pytest.mark.parametrize("workload", [CHAT, USERS], ids=["open", "users"])
def test_a_session_ends_before_a_first_prompt_that_is_too_long(workload: Sessions) -> None:
    workload = replace(workload, max_context_tokens=70)
    run = SERVICES["continuous"].serve(workload)
    fits = {place for place, each in enumerate(planned(workload, 60)) if 40 + each.inputs[0] <= 70}
    assert set(by_session(run)) == fits
    assert max(row["input_tokens"] for row in run.by_id) <= 70
    begun, completed, full, failed, unfinished = ends(run)
    assert (begun, failed, unfinished) == (60, 0, 0)
    assert completed + full == 60
    assert full > 60 - len(fits) > 0


@pytest.mark.parametrize("arrivals", [ClosedLoop(2), Poisson(1.0)], ids=str)
def test_sending_ends_where_every_first_prompt_is_too_long(arrivals: ClosedLoop | Poisson) -> None:
    run = CLOCKWORK.serve(replace(ALIKE, arrivals=arrivals, max_context_tokens=10, sessions=None, requests=5))
    assert ends(run) == (5, 0, 5, 0, 0)
    assert run.by_id == []


def test_a_limit_of_requests_leaves_a_session_unfinished() -> None:
    """Also where it is as many as were drawn of it."""
    run = CLOCKWORK.serve(replace(ALIKE, sessions=None, requests=2))
    assert ends(run) == (1, 0, 0, 0, 1)


def test_a_burst_begins_all_its_sessions_at_once() -> None:
    run = SERVICES["continuous"].serve(replace(CHAT, arrivals=Burst()))
    assert [rows[0]["sent_s"] for rows in by_session(run).values()] == [0.0] * 60


def test_the_last_session_begins_before_the_end_of_the_sending() -> None:
    run = CLOCKWORK.serve(replace(ALIKE, arrivals=Constant(0.25), sessions=None, duration_s=12.0))
    assert [row["sent_s"] for row in run.by_id] == pytest.approx([4.0, 8.0, 11.0], abs=1e-6)
    assert (ends(run), run.client.remaining()) == ((2, 0, 0, 0, 2), 0)


def test_two_runs_are_the_same_to_the_bit() -> None:
    step_time = AffineStepTime(0.01, sequence_s=1e-4, context_s=1e-7, prefill_token_s=1e-5)
    service = replace(SERVICES["continuous"], step_time=step_time)
    one, other = (service.serve(USERS) for _ in range(2))
    assert one.log.requests == other.log.requests
    assert max(one.column("finished_s")) < inf


def test_a_turn_finds_all_that_was_computed_for_those_before_it() -> None:
    """In a cache that is never full: whole blocks of the last prompt and its answer, but for its last token.

    The first turn finds the whole blocks of a system prompt that was seen before.
    """
    size = 4
    service = Service(Continuous(max_num_seqs=6, block_size=size, max_num_batched_tokens=64))
    run = service.serve(replace(CHAT, arrivals=ClosedLoop(1)))
    seen: set[int] = set()
    for number, rows in by_session(run).items():
        ((prompt, _),) = planned(CHAT, 60)[number].origin.prefix
        assert rows[0]["cached_tokens"] == (40 if prompt in seen else 0)
        seen.add(prompt)
        for last, row in pairwise(rows):
            assert row["cached_tokens"] == (last["input_tokens"] + last["output_tokens"] - 1) // size * size
    assert seen == {0, 1, 2}
