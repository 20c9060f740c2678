"""Types of fields: what the annotation of a component's field allows, and whether a value is that."""

from __future__ import annotations

import dataclasses
import sys
import types
import typing
from collections.abc import Mapping
from functools import cache
from numbers import Integral, Real
from typing import Any, Literal

_LARGEST = sys.float_info.max  # NaN, infinities and longer integers do not compare below it


@cache
def field_types(component: type) -> dict[str, Any]:
    """Return the type of each field of a component, resolved."""
    return typing.get_type_hints(component)


@cache
def places_of_parts(component: type) -> frozenset[str]:
    """Return the names of the fields that hold components."""
    hints = field_types(component).items()
    return frozenset(name for name, hint in hints if any(_is_part(option) for option in options(hint)))


def options(hint: Any) -> tuple[Any, ...]:
    """Return the members of a union, or the one type that ``hint`` is."""
    union = typing.get_origin(hint) in (types.UnionType, typing.Union)
    return typing.get_args(hint) if union else (hint,)


def named_part(hint: Any) -> type | None:
    """Return the class of the components that a type holds by name, as ``Mapping[str, X]``; None: no such."""
    members = typing.get_args(hint) if typing.get_origin(hint) is Mapping else ()
    part = members[-1] if members else None
    return part if isinstance(part, type) and dataclasses.is_dataclass(part) else None


def is_protocol(option: Any) -> bool:
    """Tell whether a type says what any class must have, rather than which class it is."""
    return isinstance(option, type) and bool(getattr(option, "_is_protocol", False))


def methods(protocol: type) -> list[str]:
    """Return what a protocol asks for."""
    return [name for name in vars(protocol) if not name.startswith("_")]


def is_a(value: object, hint: Any) -> bool:
    """Tell whether a value is of a type, or of one of a union's."""
    return any(_is_one(value, option) for option in options(hint))


def is_number(value: object, kind: type) -> bool:
    """Tell whether a value is a number of a kind, Python's or numpy's; truth values are none."""
    return isinstance(value, kind) and not isinstance(value, bool)


def _is_one(value: Any, option: Any) -> bool:
    """Tell whether a value is of a type that is no union."""
    origin = typing.get_origin(option) or option
    if origin is Literal:
        return value in typing.get_args(option)
    if option is float:
        return is_number(value, Real) and bool(abs(value) <= _LARGEST)
    if option is int:
        return is_number(value, Integral)
    if is_protocol(option):
        return not isinstance(value, type) and all(hasattr(type(value), name) for name in methods(option))
    if origin is tuple and isinstance(value, tuple):
        return _has_members(value, typing.get_args(option))
    return origin is Any or isinstance(value, origin)


def _has_members(value: tuple[object, ...], members: tuple[Any, ...]) -> bool:
    """Tell whether a tuple holds what ``tuple[X, ...]`` or ``tuple[X, Y]`` says."""
    if members[1:] == (...,):
        members = members[:1] * len(value)
    if not members:
        return True
    return len(value) == len(members) and all(map(is_a, value, members))


def _is_part(option: Any) -> bool:
    """Tell whether a type stands for components: a class of them, or what any class must have to be one."""
    return is_protocol(option) or (isinstance(option, type) and dataclasses.is_dataclass(option))
