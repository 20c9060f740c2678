"""Values inside nested mappings, by the names on the way to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def with_value(values: Any, names: Sequence[str], value: Any) -> dict[str, Any]:
    """Return a mapping with one value replaced; what is not on the way to it is shared."""
    name, *rest = names
    here = values if isinstance(values, Mapping) else {}
    return {**here, name: with_value(here.get(name), rest, value) if rest else value}


def value_at(values: Any, names: Sequence[str]) -> Any:
    """Return what is at a place, or None; a list or a plain value on the way to it stands for it."""
    for name in names:
        values = values.get(name) if isinstance(values, Mapping) else values
    return values
