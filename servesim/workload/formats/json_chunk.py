"""Requests as JSON objects, some at a time, with the places that they stand in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

from servesim.check import Problem
from servesim.workload.batch import BATCH_ROWS
from servesim.workload.formats.faults import Recurring
from servesim.workload.formats.field import Field
from servesim.workload.formats.json_array import items, read_items
from servesim.workload.formats.source import Source

#: Where an object stands, such as "line 3", and the object; or what else stands there.
Placed = tuple[str, Any]


@dataclass(frozen=True)
class NoJson:
    """Stands for a text that is not one JSON value; ``begins`` is the value that it begins with, if any."""

    begins: Any = None

    @property
    def why(self) -> str:
        """Return what is wrong with a line of it."""
        more = " and nothing behind it: each object needs a line of its own"
        return f"must be a JSON object{more if isinstance(self.begins, dict) else ''}"


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

    def problems(self, fields: Sequence[Field]) -> Iterator[Problem | Recurring]:
        """Yield what is wrong, with its place."""
        for place, value in self._placed:
            where = f"path, {place}"
            if isinstance(value, NoJson):
                yield Problem(where, None, value.why)
                continue
            if not isinstance(value, dict):
                yield Problem(where, value, "must be a JSON object")
                continue
            if refused := [key for key in self._refused if key in value]:
                yield from (self._refusal(key, place) for key in refused)
                continue
            yield from _of_object(value, place, fields)

    def _refusal(self, key: str, place: str) -> Recurring:
        why = self._refused[key]
        return Recurring(place, f"has {key}, and {why}", Problem(f"path, {place}, {key}", None, why))


def _of_object(value: dict[str, Any], place: str, fields: Sequence[Field]) -> Iterator[Problem | Recurring]:
    """Yield what is wrong with the fields of an object."""
    for field in fields:
        if not field.accepts(value.get(field.name)):
            problem = Problem(f"path, {place}, {field.name}", value.get(field.name), field.rule)
            absent = Recurring(place, f"has no {field.name}, which {field.rule}", problem)
            yield problem if field.name in value else absent


def chunks(placed: Iterable[Placed], refused: dict[str, str]) -> Iterator[JsonChunk]:
    """Yield objects in chunks."""
    left = iter(placed)
    while some := list(islice(left, BATCH_ROWS)):
        yield JsonChunk(some, refused)


def of_source(source: Source) -> Iterator[Placed]:
    """Yield the object of each line that is not blank, or each item where the file is one list."""
    if source.first_letter() == "[":
        found = read_items(source.pieces(), source.name, "a JSON list of objects")
        yield from ((f"record {number}", value) for number, value in enumerate(found, start=1))
        return
    for number, line in enumerate(source.lines(), start=1):
        if line.strip():
            yield f"line {number}", parsed(line)


def first_records(source: Source, count: int) -> list[Any]:
    """Return the first objects of a file, up to so many, or what else stands there; they stay to be read.

    The list of a file that is one ends where it cannot be read.
    """
    if source.first_letter() != "[":
        return [parsed(line) for line in source.first_lines(count)]
    found: list[Any] = []
    with suppress(ValueError, RecursionError):
        found.extend(islice(items(source.first_pieces()), count))
    return found


def parsed(text: str) -> Any:
    """Return what a text of JSON says, or :class:`NoJson`."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        with suppress(ValueError, RecursionError):
            return NoJson(json.JSONDecoder().raw_decode(text.lstrip())[0])
        return NoJson()
