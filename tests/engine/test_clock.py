"""Event time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from simpy import Event

from servesim.engine.clock import ARRIVAL, BOUNDARY, Alarm, Clock


@pytest.fixture
def clock() -> Clock:
    """A clock that nothing has happened on."""
    return Clock()


@pytest.fixture
def story() -> list[str]:
    """What has happened, in order."""
    return []


def tells(story: list[str], line: str) -> Alarm:
    """Return an alarm that adds a line to the story."""
    return Alarm(lambda: story.append(line))


def test_alarms_ring_in_order_of_time(clock: Clock, story: list[str]) -> None:
    clock.set(tells(story, "late"), 2.0, ARRIVAL)
    clock.set(tells(story, "early"), 1.0, ARRIVAL)
    assert clock.run_until() == 2
    assert story == ["early", "late"]
    assert clock.now == 2.0


def test_arrivals_come_before_boundaries(clock: Clock, story: list[str]) -> None:
    clock.set(tells(story, "boundary"), 1.0, BOUNDARY)
    clock.set(tells(story, "arrival"), 1.0, ARRIVAL)
    clock.run_until()
    assert story == ["arrival", "boundary"]


def test_equals_ring_in_the_order_in_which_they_were_set(clock: Clock, story: list[str]) -> None:
    for line in ("first", "second", "third"):
        clock.set(tells(story, line), 1.0, BOUNDARY)
    clock.run_until()
    assert story == ["first", "second", "third"]


def test_an_alarm_rings_once_for_each_time_it_is_set_for(clock: Clock) -> None:
    times: list[float] = []
    alarm = Alarm(lambda: times.append(clock.now))
    for time_s in (3.0, 1.0, 3.0):
        clock.set(alarm, time_s, ARRIVAL)
    clock.run_until()
    assert times == [1.0, 3.0, 3.0]


def test_a_ring_may_set_another_alarm_for_the_same_instant(clock: Clock, story: list[str]) -> None:
    """It rings before the clock moves on, behind the arrivals of the instant."""
    clock.call_at(1.0, lambda: clock.set(tells(story, "boundary"), 1.0, BOUNDARY))
    clock.set(tells(story, "arrival"), 1.0, ARRIVAL)
    clock.set(tells(story, "later"), 1.5, ARRIVAL)
    clock.run_until()
    assert story == ["arrival", "boundary", "later"]


def test_the_horizon_is_included(clock: Clock, story: list[str]) -> None:
    clock.set(tells(story, "at"), 1.0, BOUNDARY)
    clock.set(tells(story, "after"), 1.0 + 1e-12, ARRIVAL)
    assert clock.run_until(1.0) == 1
    assert story == ["at"]
    clock.run_until()
    assert story == ["at", "after"]


def test_absolute_times_are_kept_to_the_last_bit(clock: Clock) -> None:
    """0.2 + (0.9 - 0.2) is not 0.9: a delay would make two simultaneous alarms fall apart."""
    assert 0.2 + (0.9 - 0.2) != 0.9
    seen: list[float] = []
    clock.call_at(0.2, lambda: clock.call_at(0.9, lambda: seen.append(clock.now)))
    clock.call_at(0.9, lambda: seen.append(clock.now))
    clock.run_until()
    assert seen == [0.9, 0.9]


def test_processes_of_simpy_live_beside_alarms(clock: Clock, story: list[str]) -> None:
    def process() -> Iterator[Event]:
        yield clock.timeout(1.0)
        story.append(f"process at {clock.now}")
        yield clock.timeout(1.0)
        story.append(f"process at {clock.now}")

    clock.process(process())
    clock.set(tells(story, "alarm"), 1.5, ARRIVAL)
    clock.run_until()
    assert story == ["process at 1.0", "alarm", "process at 2.0"]


def test_a_process_that_fails_fails_the_run(clock: Clock) -> None:
    def process() -> Iterator[Event]:
        yield clock.timeout(1.0)
        raise ValueError("broken")

    clock.process(process())
    with pytest.raises(ValueError, match="broken"):
        clock.run_until()
