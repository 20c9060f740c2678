"""Parts of the state: values that controls set, each of a kind and with the keys that it sets.

A control has one name everywhere: it is a field of a part of the state, a parameter of the URL and the id of
the control on the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from servesim.report.dashboard.option_files import Chosen

Value = str | int | float | None
Own = TypeVar("Own", bound="Part")


def control(kind: type, default: Value, *keys: str) -> Any:
    """Declare a control: the kind of its values, the value it starts with, and the keys that it sets.

    A value that is None stands for no value: as the configuration files have it, or no limit.
    """
    return field(default=default, metadata={"kind": kind, "keys": keys})


@dataclass(frozen=True)
class Part:
    """Controls that belong together; what they say is said in overrides, as far as it is seen."""

    @property
    def chosen(self) -> Chosen:
        """The options that its controls choose."""
        return Chosen({})

    def keys(self, name: str) -> tuple[str, ...]:
        """Return the keys that a control sets."""
        found: tuple[str, ...] = self.__dataclass_fields__[name].metadata["keys"]
        return found

    def shows(self, name: str) -> bool:
        """Tell whether a control is seen: whether what is chosen has all that it sets."""
        return all(self.chosen.has(key) for key in self.keys(name))

    def own(self, name: str) -> Any:
        """Return what a control without a value stands at, as the files have it; None: they say nothing."""
        keys = self.keys(name)
        return self.chosen.own(keys[0]) if keys else None

    def overrides(self) -> Iterator[str]:
        """Yield what is seen, and not as the configuration files have it."""
        for name, value in self.changes():
            if self.shows(name):
                yield from (f"{key}={written(value)}" for key in self.keys(name))

    def changes(self) -> Iterator[tuple[str, Value]]:
        """Yield name and value of the controls that are not as they start."""
        for each in fields(self):
            value = getattr(self, each.name)
            if value != each.default:
                yield each.name, value

    @classmethod
    def of(cls: type[Own], values: Mapping[str, Any]) -> Own:
        """Return the part of controls with these values; what is missing is as it starts."""
        known = kinds(cls)
        return cls(**{name: as_kind(known[name], value) for name, value in values.items() if name in known})


def kinds(part: type[Part]) -> dict[str, type]:
    """Return the kind of value of each control of a part, by its name."""
    return {each.name: each.metadata["kind"] for each in fields(part)}


def as_kind(kind: type, value: Value) -> Value:
    """Return a value as its control holds it: no text is no value, and numbers are of one type."""
    if value == "" or value is None:
        return None
    if kind is str:
        return str(value)
    number = float(value)
    return int(number) if kind is int and number.is_integer() else number


def written(value: Value) -> str:
    """Return a value as it is typed: as few digits as mean exactly this number."""
    if value is None:
        return "null"
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 1e15
    return str(int(value)) if whole else str(value)
