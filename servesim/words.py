"""What messages call things: names in a row, long values, and the types of fields."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from servesim.field_types import is_protocol, methods, options

_LONGEST_VALUE = 80  # characters of a value that a message repeats

_TYPES = {
    int: "a whole number",
    float: "a finite number",
    bool: "true or false",
    str: "text",
    Mapping: "keys with values",
    type(None): "null",
}


def listed(names: Iterable[object], word: str = "or") -> str:
    """Return the names as a reader would say them: "a, b or c"."""
    *most, last = [str(name) for name in names] or ["nothing"]
    return f"{', '.join(most)} {word} {last}" if most else last


def shortened(text: str) -> str:
    """Return a value's text, or its beginning where it is long."""
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."


def called(hint: Any) -> str:
    """Return what a reader would call the values that a type allows: "a whole number or null"."""
    return listed(word for option in options(hint) for word in _words(option))


def _words(option: Any) -> tuple[str, ...]:
    """Return the words for a type that is no union: one for each choice."""
    known = typing.get_origin(option) or option
    if known is Literal:
        return tuple(str(choice) for choice in typing.get_args(option))
    if known is tuple:
        return (_list_words(typing.get_args(option)),)
    if is_protocol(option):
        return (f"an object with {listed(methods(option), 'and')}",)
    return (_TYPES.get(known, getattr(known, "__name__", str(known))),)


def _list_words(members: tuple[Any, ...]) -> str:
    if not members:
        return "a list"
    if members[1:] == (...,):
        return f"a list, each of it {called(members[0])}"
    return f"[{', '.join(map(called, members))}]"
