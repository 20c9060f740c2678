"""A component: a frozen dataclass of a scenario, and how its configuration is told."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from numbers import Integral, Real
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class SelfDescribed(Protocol):
    """A component that has more to say than its configuration needs, and says itself what that is."""

    def described(self) -> dict[str, Any]:
        """Return what a configuration says of it, as plain values."""


def plain(value: Any) -> Any:
    """Return a tree of components as plain values, each component as a dict.

    Its ``kind`` is the name of its class in snake case. What is none of a configuration's types is told by
    its ``repr``.
    """
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if type(value) not in (bool, int, float) and isinstance(value, Real):  # numpy's, say
        return int(value) if isinstance(value, Integral) else float(value)
    if not is_dataclass(value):
        return value if isinstance(value, (str, int, float, type(None))) else repr(value)
    said = value.described() if isinstance(value, SelfDescribed) else _fields(value)
    return {"kind": kind_of(value), **said}


def kind_of(component: Any) -> str:
    """Return the name of a component's class in snake case, by which a configuration calls it."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(component).__name__).lower()


def _fields(component: Any) -> dict[str, Any]:
    return {field.name: plain(getattr(component, field.name)) for field in fields(component)}
