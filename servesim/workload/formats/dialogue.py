"""Who waits for whom in a recording: the session of each request, and the pause before it.

AIPerf and Dynamo extend Mooncake's lines by ``session_id``, whose rows are the turns of one conversation in
the order of the file, and by ``delay`` (``delay_ms``), the milliseconds from the end of the answer before a
turn to its sending. A turn with a ``timestamp`` is not sent before it; one without may stand anywhere but
first. (AIPerf, src/aiperf/dataset/loader/models.py, ``MooncakeTrace``; Dynamo,
lib/mocker/src/loadgen/trace.rs, ``from_mooncake``.)
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np

from servesim.check import Problem
from servesim.workload.formats.cells import LATEST_S
from servesim.workload.formats.faults import Faults, Recurring
from servesim.workload.formats.json_chunk import Placed
from servesim.workload.formats.recording import Dialogue

SESSION, TIME = "session_id", "timestamp"
DELAYS = ("delay", "delay_ms")
KEYS = (SESSION, *DELAYS)

_NS = 10**6  # nanoseconds of a millisecond
_LATEST_MS = LATEST_S * 1000
_NO_TURN = "stands before the first turn of its session, which follows no answer"


class Turns:
    """Notes of each object that passes by to which session it belongs, and what it waits for.

    A later turn without a time, in a file that has some, gets the one at which it would come if answers took
    none; it only fills the place of one, so it keeps the rule of times whatever the others are.
    """

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._numbers: dict[str | int, int] = {}
        self._timed: bool | None = None  # whether the first object has a time
        self._last: list[float] = []  # the time of the last turn of each session
        self._columns = array("q"), array("q"), array("b")

    def through(self, placed: Iterator[Placed]) -> Iterator[Placed]:
        """Yield the objects, all of them with times where the first turns have them."""
        for place, value in placed:
            yield place, self._noted(place, value) if isinstance(value, dict) else value

    def dialogue(self) -> Dialogue | None:
        """Return what was noted; None where no request has an answer to wait for."""
        session, pause_ns, dated = (np.array(column) for column in self._columns)
        return Dialogue(session, pause_ns, dated > 0) if len(self._last) < len(session) else None

    def _noted(self, place: str, value: dict[str, Any]) -> dict[str, Any]:
        """Note whose turn an object is, and return it, with a time where it has none of its own."""
        name, time = self._name(place, value), value.get(TIME)
        if self._timed is None:
            self._timed = TIME in value
        key, pause_ms = self._pause(place, value)
        number = len(self._last) if name is None else self._numbers.setdefault(name, len(self._last))
        if number == len(self._last):
            self._last.append(0)
            if pause_ms:
                problem = Problem(f"path, {place}, {key}", pause_ms, _NO_TURN)
                self._faults.add([Recurring(place, f"has a {key} that {_NO_TURN}", problem)])
        elif time is None and self._timed:
            value = {**value, TIME: min(self._last[number] + pause_ms, _LATEST_MS)}
        row = number, round(pause_ms * _NS), time is not None
        for column, noted in zip(self._columns, row, strict=True):
            column.append(noted)
        if _is_moment(value.get(TIME)):
            self._last[number] = value[TIME]
        return value

    def _name(self, place: str, value: dict[str, Any]) -> str | int | None:
        """Return what the session of an object is called; None: it has none, or none that could be."""
        name = value.get(SESSION)
        if name is None or type(name) in (str, int):
            return name
        self._add(place, SESSION, name, "must be text or a whole number")
        return None

    def _pause(self, place: str, value: dict[str, Any]) -> tuple[str | None, float]:
        """Return the key of an object's pause and the pause (ms), 0 where there is none, or none could be."""
        key = next((key for key in DELAYS if value.get(key) is not None), None)
        pause_ms = 0 if key is None else value[key]
        if _is_moment(pause_ms):
            return key, pause_ms
        self._add(place, str(key), pause_ms, f"must be a number from 0 to {_LATEST_MS:,.6g} (ms)")
        return key, 0

    def _add(self, place: str, key: str, value: object, rule: str) -> None:
        """Take note of what is wrong with the value of a key."""
        self._faults.add([Problem(f"path, {place}, {key}", value, rule)])


def _is_moment(value: Any) -> bool:
    """Return whether a value is a number of milliseconds that a time or a pause may have."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 <= value <= _LATEST_MS
