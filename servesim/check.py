"""Checked fields: each configuration field states its unit and bounds, and one call lists every problem.

A component is a frozen dataclass whose fields are made with :func:`quantity`. It may have

- ``problems(self) -> Iterator[Problem]`` for what concerns several fields at once, its paths relative to the
  component; ``concerns`` names those fields where they are not all, and ``concerns_of`` further methods of
  this kind, each with its fields;
- ``hints``, a mapping from keys that it refuses to a sentence each that says what to use instead.

:func:`check` walks a whole tree of components and raises one :class:`ConfigError`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

from servesim.field_types import field_types, is_a, is_number, named_part, places_of_parts
from servesim.words import called, listed, shortened

#: Bounds of many fields. Beyond any study, and yet such that the arithmetic of a run stays sound: on a clock
#: of doubles that shows 32 years, a tenth of a microsecond can still be told.
MOST_S = 1e9
#: Bytes or operations per second: a hundred thousand of today's GPUs in one.
MOST_PER_S = 1e21
#: Bytes of a memory: a hundred million GPUs in one.
MOST_BYTES = 10**19
#: Factors, weights and shares that may be above 1.
LEAST_FACTOR, MOST_FACTOR = 1e-9, 1e6


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with the input: where, what was given, and what was expected."""

    path: str
    value: object
    message: str

    def __str__(self) -> str:
        given = "" if self.value is None else f" = {shortened(repr(self.value))}"
        return f"{self.path}{given}: {self.message}" if self.path else self.message

    def under(self, prefix: str) -> Problem:
        """Return the same problem with its path below ``prefix``."""
        path = ".".join(part for part in (prefix, self.path) if part)
        return dataclasses.replace(self, path=path)


class ConfigError(ValueError):
    """The input is wrong; ``problems`` lists everything that is wrong with it, each thing once."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple({str(problem): problem for problem in problems}.values())
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        lines = (f"\n  {problem}" for problem in self.problems)
        super().__init__(f"{count} in the input:{''.join(lines)}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problems,)


def quantity(
    unit: str = "",
    *,
    above: float | None = None,
    below: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    default: Any = dataclasses.MISSING,
    factory: Callable[[], Any] | None = None,
) -> Any:
    """Declare a dataclass field with its unit and its bounds (``above`` and ``below`` are strict).

    A ``factory`` makes a mutable default: the field counts in comparisons, and not in hashes.
    """
    bounds = {"above": above, "at least": at_least, "below": below, "at most": at_most}
    about = {"unit": unit, "bounds": bounds}
    if factory is not None:
        return dataclasses.field(default_factory=factory, hash=False, metadata=about)
    return dataclasses.field(default=default, metadata=about)


def check(component: object, path: str = "") -> None:
    """Raise a :class:`ConfigError` that lists every problem of a tree of components.

    Raises:
        TypeError: ``component`` is nothing of the kind.
    """
    if isinstance(component, type) or not dataclasses.is_dataclass(component):
        given = shortened(repr(component))
        raise TypeError(f"needs a scenario or a part of one, as servesim.load(...) returns it, not {given}")
    found = list(problems(component, path))
    if found:
        raise ConfigError(found)


def problems(component: object, path: str = "") -> Iterator[Problem]:
    """Yield the problems of every field, then those that the component itself reports.

    What a component says of several fields at once is asked only when each of them alone is right, so that
    its arithmetic never meets a NaN or a string: all its fields, or those that it names (``concerns``).
    """
    fields = dataclasses.fields(component)  # type: ignore[arg-type]
    values = {field.name: getattr(component, field.name) for field in fields}
    own = list(field_problems(type(component), values))
    yield from (problem.under(path) for problem in (*own, *joint_problems(component, own)))


def joint_problems(component: object, own: Iterable[Problem]) -> list[Problem]:
    """Return what a component says of several fields at once, ``own`` being what is wrong with single ones.

    Nothing of fields of which one is wrong in itself.
    """
    fields = tuple(field.name for field in dataclasses.fields(component))  # type: ignore[arg-type]
    wrong = {re.split(r"[.\[]", problem.path)[0] for problem in own}
    reports = {"problems": getattr(component, "concerns", fields), **getattr(component, "concerns_of", {})}
    found: list[Problem] = []
    for name, concerns in reports.items():
        report = getattr(component, name, None)
        if report is not None and wrong.isdisjoint(concerns):
            found += report()
    return found


def field_problems(component: type, values: Mapping[str, object], path: str = "") -> Iterator[Problem]:
    """Yield what is wrong with each value alone, as a field of the class ``component``.

    Values that are components themselves are walked into; fields without a value are passed over.
    """
    hints = field_types(component)
    for field in dataclasses.fields(component):
        if field.name not in values:
            continue
        value, hint = values[field.name], hints[field.name]
        has_parts = field.name in places_of_parts(component)
        if has_parts and (message := _mismatch(value, hint)):
            yield Problem(field.name, value, message).under(path)
        elif dataclasses.is_dataclass(value) and has_parts:
            yield from (problem.under(path) for problem in problems(value, field.name))
        elif (part := named_part(hint)) and isinstance(value, Mapping):
            named = (_part_problems(part, each, f"{field.name}.{key}") for key, each in value.items())
            yield from (problem.under(path) for found in named for problem in found)
        elif "bounds" in field.metadata:
            message = _mismatch(value, hint) or _out_of_bounds(value, field.metadata["bounds"])
            if message:
                unit = field.metadata["unit"]
                yield Problem(field.name, value, f"{message}{f' ({unit})' if unit else ''}").under(path)


def _part_problems(part: type, value: object, path: str) -> Iterator[Problem]:
    """Yield what is wrong with a value that is to be a component of the class ``part``."""
    if message := _mismatch(value, part):
        yield Problem(path, value, message)
    else:
        yield from problems(value, path)


def _mismatch(value: object, hint: Any) -> str | None:
    """Say what type was expected, or return None where ``value`` has it."""
    return None if is_a(value, hint) else f"must be {called(hint)}"


def _out_of_bounds(value: Any, bounds: Mapping[str, float | None]) -> str | None:
    """Say which bounds hold, or return None where all of them do; only numbers have bounds."""
    if not is_number(value, Real):
        return None
    holds = {
        "above": lambda limit: value > limit,
        "at least": lambda limit: value >= limit,
        "below": lambda limit: value < limit,
        "at most": lambda limit: value <= limit,
    }
    limits = {word: limit for word, limit in bounds.items() if limit is not None}
    if all(holds[word](limit) for word, limit in limits.items()):
        return None
    return f"must be {listed((f'{word} {limit:g}' for word, limit in limits.items()), 'and')}"
