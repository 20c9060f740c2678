"""Requests as JSON objects, some at a time, with the places that they stand in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from servesim.check import Problem
from servesim.workload.batch import BATCH_ROWS
from servesim.workload.formats.field import Field

#: Where an object stands, such as "line 3", and the object; or what else stands there.
Placed = tuple[str, Any]

#: Stands for a line that is not JSON.
NO_JSON = object()


class JsonChunk:
    """Objects and their places. ``refused`` are keys that no object may have, with what they mean."""

    def __init__(self, placed: Sequence[Placed], refused: dict[str, str]) -> None:
        self._placed, self._refused = placed, refused

    def column(self, field: Field) -> Sequence[Any]:
        """Return the values of a key, None where it is not there; ValueError where there are no objects."""
        objects = [value for _, value in self._placed]
        if set(map(type, objects)) != {dict}:
            raise ValueError
        if any(key in each for key in self._refused for each in objects):
            raise ValueError
        return [each.get(field.name) for each in objects]

    def problems(self, fields: Sequence[Field]) -> Iterator[Problem]:
        """Yield what is wrong, with its place."""
        for place, value in self._placed:
            where = f"path, {place}"
            if not isinstance(value, dict):
                yield Problem(where, None if value is NO_JSON else value, "must be a JSON object")
                continue
            yield from (
                Problem(f"{where}, {key}", None, self._refused[key]) for key in self._refused if key in value
            )
            for field in fields:
                if not field.accepts(value.get(field.name)):
                    yield Problem(f"{where}, {field.name}", value.get(field.name), field.rule)


def chunks(placed: Iterable[Placed], refused: dict[str, str]) -> Iterator[JsonChunk]:
    """Yield objects in chunks."""
    left = iter(placed)
    while some := list(islice(left, BATCH_ROWS)):
        yield JsonChunk(some, refused)


def of_lines(lines: Iterable[str]) -> Iterator[Placed]:
    """Yield the object of each line that is not blank."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield f"line {number}", parsed(line)


def parsed(text: str) -> Any:
    """Return what a text of JSON says, or ``NO_JSON``."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return NO_JSON
