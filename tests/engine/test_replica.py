"""The alarm of one engine."""

from __future__ import annotations

from servesim.engine.clock import Clock
from servesim.engine.replica import Replica
from servesim.workload.request import Request


class Scripted:
    """An engine that answers what it was told to, and notes when it was asked."""

    def __init__(self, on_submit: list[float | None], on_boundary: list[float | None]) -> None:
        self.on_submit = on_submit
        self.on_boundary = on_boundary
        self.boundaries: list[float] = []

    def submit(self, request: Request, now: float) -> float | None:
        """Return the next answer."""
        return self.on_submit.pop(0)

    def boundary(self, now: float) -> float | None:
        """Note the time, and return the next answer."""
        self.boundaries.append(now)
        return self.on_boundary.pop(0)

    def halt(self, now: float) -> None:
        """Do nothing."""


def boundaries(engine: Scripted, submits: list[float]) -> list[float]:
    """Submit requests at times; return when the engine had its boundaries."""
    clock = Clock()
    replica = Replica(clock, engine)
    for time_s in submits:
        clock.call_at(time_s, lambda: replica.submit(Request(0, 0.0, 1, 1)))
    clock.run_until()
    return engine.boundaries


def test_boundaries_come_when_the_engine_asks_for_them() -> None:
    assert boundaries(Scripted([1.0], [2.5, 4.0, None]), [1.0]) == [1.0, 2.5, 4.0]


def test_an_idle_engine_stays_idle_until_it_is_woken() -> None:
    assert boundaries(Scripted([1.0, 7.0], [None, None]), [1.0, 7.0]) == [1.0, 7.0]


def test_a_request_may_bring_the_next_boundary_forward() -> None:
    """At 2 the boundary at 9 is moved to 3; what was set for 9 rings in vain."""
    assert boundaries(Scripted([1.0, 3.0], [9.0, 12.0, None]), [1.0, 2.0]) == [1.0, 3.0, 12.0]


def test_a_request_never_puts_the_next_boundary_off() -> None:
    assert boundaries(Scripted([1.0, 5.0], [4.0, None]), [1.0, 2.0]) == [1.0, 4.0]


def test_a_request_may_leave_the_next_boundary_alone() -> None:
    assert boundaries(Scripted([1.0, None], [4.0, None]), [1.0, 2.0]) == [1.0, 4.0]


def test_two_requests_at_one_instant_make_one_boundary() -> None:
    assert boundaries(Scripted([1.0, 1.0], [None]), [1.0, 1.0]) == [1.0]


def test_a_boundary_at_an_abandoned_time_happens_once() -> None:
    """9 is abandoned for 3, and asked for again at 3: both alarms ring at 9, for one boundary."""
    assert boundaries(Scripted([1.0, 3.0], [9.0, 9.0, None]), [1.0, 2.0]) == [1.0, 3.0, 9.0]
