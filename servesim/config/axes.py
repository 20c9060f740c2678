"""The axes of a study: a key, or a group of options, with several values."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from hydra.core.override_parser.types import ValueType

from servesim.check import Problem
from servesim.config.groups import Groups
from servesim.config.overrides import is_free_text, is_sweep, parsed, sweep_size, sweep_values


class Axis(NamedTuple):
    """A key with its values, each also as the override that sets it."""

    key: str
    values: tuple[Any, ...]
    overrides: tuple[str, ...]


def is_axis(text: str) -> bool:
    """Tell whether an override gives several values."""
    return is_sweep(parsed(f"++{text}" if not text.startswith("+") else text))


def axis_size(text: str) -> float:
    """Return how many values an axis gives, without making them: one where that is not to be told."""
    key, _, value = text.partition("=")
    override = parsed(f"++{key}={value}")
    return max(sweep_size(override), 1) if override is not None and override.is_sweep_override() else 1


def read_axis(text: str, groups: Groups) -> Axis | Problem:
    """Return the axis that ``key=v1,v2`` (or ``key=range(1,9)``) describes, or say what is wrong with it.

    Values are parsed as Hydra does; whether the key takes them is for the scenarios to say.
    """
    key, equals, value = text.partition("=")
    if not (equals and key) or key[0] in "+~":
        return Problem(text, None, "is not an axis; write key=value1,value2")
    if not value.strip():
        return Problem(f"{key}=", None, "is an axis without values; write key=value1,value2")
    override = parsed(f"++{key}={value}")
    texts = [value]
    if override is not None and override.is_sweep_override():
        texts = sweep_values(override)
        if not texts:
            return Problem(key, value, "write the values of an axis out: key=value1,value2")
    twice = sorted(each for each, times in Counter(texts).items() if times > 1)
    if twice:
        return Problem(key, value, f"gives {twice[0]} twice")
    if override is not None and override.value_type == ValueType.RANGE_SWEEP:
        values = tuple(override.sweep_iterator())  # numbers, which need no reading
    else:
        values = tuple(each if key in groups else _value(key, each) for each in texts)
    return Axis(key, values, tuple(f"{key}={each}" for each in texts))


def _value(key: str, text: str) -> Any:
    """Return a value as Hydra reads it; free text, and text that it cannot read, as it stands."""
    override = None if is_free_text(key) else parsed(f"++{key}={text}")
    return text if override is None else override.value()
