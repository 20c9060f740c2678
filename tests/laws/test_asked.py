"""What was asked for, and what a horizon leaves of it: nothing is missing, and nothing is made up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from servesim.engine.continuous import Continuous
from servesim.workload.arrivals import ClosedLoop, Poisson
from servesim.workload.client import Client
from servesim.workload.lengths import Fixed, Geometric
from servesim.workload.sessions import Sessions
from servesim.workload.synthetic import Synthetic
from servesim.workload.tools import Tools
from servesim.workload.turns import Geometric as GeometricTurns
from tests.costs import constant_step
from tests.serving import Run, Service

SERVICE = Service(Continuous(max_num_seqs=4), constant_step(0.01))
OPEN = Synthetic(Poisson(20.0), Geometric(30.0, 12.0), requests=40)
USERS = replace(OPEN, arrivals=ClosedLoop(6, ramp_up_s=0.5, think_time_s=0.1))
CHAT = Sessions(
    Poisson(5.0), Geometric(30.0, 12.0), GeometricTurns(4.0), Tools(Fixed(9, 3), calls=0.5), think_time_s=0.3
)
TALKERS = replace(CHAT, arrivals=ClosedLoop(3, ramp_up_s=0.5, think_time_s=0.1))

COUNTED = {
    "open": OPEN,
    "open, for a time": replace(OPEN, requests=None, duration_s=2.0),
    "open, unless you say": replace(OPEN, arrivals=Poisson(900.0), requests=None),
    "users": USERS,
    "sessions": replace(CHAT, sessions=12),
    "sessions, some too long": replace(CHAT, sessions=12, max_context_tokens=90),
    "sessions of users": replace(TALKERS, sessions=12, max_context_tokens=90),
    "requests of sessions": replace(CHAT, requests=40),
    "requests of users": replace(TALKERS, requests=40),
    "both": replace(TALKERS, sessions=12, requests=30),
    "both, and fewer sessions": replace(TALKERS, sessions=5, requests=3000),
}
UNCOUNTED = {
    "users": replace(USERS, requests=None),
    "users, for a time": replace(USERS, requests=None, duration_s=2.0),
    "users, for a time at the most": replace(USERS, duration_s=2.0),
    "sessions": CHAT,
    "sessions, for a time": replace(CHAT, duration_s=2.0),
    "sessions of users": TALKERS,
}
CLIENTS = {
    "plain": Client(),
    "semaphore": Client(max_concurrency=2, api_time_s=0.02),
    "impatient": Client(timeout_s=0.12, max_retries=2, backoff_s=0.3, api_time_s=0.02),
}
HORIZONS_S = (1e-9, 0.02, 0.4, 1.0, 1.7)


def sent(run: Run) -> int:
    """Return how many requests have left the client, however often."""
    return sum(row["attempt"] == 0 for row in run.requests)


def takes(name: str, client: str) -> bool:
    """Say whether a client goes with the traffic, and does not end its sessions before their last turn."""
    if client == "semaphore":
        return name.startswith("open")
    return client == "plain" or name.startswith(("open", "users", "requests"))


@pytest.mark.parametrize(
    ("name", "client"), [(name, client) for name in COUNTED for client in CLIENTS if takes(name, client)]
)
def test_what_is_sent_held_and_not_sent_is_what_was_asked_for(name: str, client: str) -> None:
    """Which is what a run sends that nothing cuts."""
    service, workload = replace(SERVICE, client=CLIENTS[client]), COUNTED[name]
    asked = sent(whole := service.serve(workload))
    assert whole.client.remaining() == len(whole.client.held_due_s) == 0
    for horizon_s in HORIZONS_S:
        run = service.serve(workload, horizon_s=horizon_s)
        left = run.client.remaining()
        assert sent(run) + len(run.client.held_due_s) + left == asked
        assert left > 0 or horizon_s > min(HORIZONS_S)


@pytest.mark.parametrize("name", UNCOUNTED)
def test_where_answers_lead_to_requests_nothing_is_missed_that_nobody_asked_for(name: str) -> None:
    """The default number is where a run ends, not what somebody wants."""
    workload = UNCOUNTED[name]
    for horizon_s in HORIZONS_S:
        run = SERVICE.serve(workload, horizon_s=horizon_s, duration_s=workload.duration_s)
        assert run.client.remaining() == 0
    assert sent(run) > 0
