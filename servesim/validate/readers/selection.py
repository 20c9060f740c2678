"""Rows of a table: those to be taken, and the groups that they fall into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from servesim.check import ConfigError, Problem, listed
from servesim.validate.readers.content import Content, Row
from servesim.validate.readers.problems import as_number


def conditions(text: str) -> dict[str, str]:
    """Return the values of columns that ``"backend=vllm tp=4"`` asks for.

    Raises:
        ConfigError: a word is no condition.
    """
    words = text.split()
    if wrong := [word for word in words if not all(word.partition("="))]:
        raise ConfigError([Problem("--where", word, "must be COLUMN=VALUE") for word in wrong])
    return {name: value for name, _, value in (word.partition("=") for word in words)}


def chosen(content: Content, where: Mapping[str, str]) -> list[Row]:
    """Return the rows whose columns have these values; numbers are compared as numbers.

    Raises:
        ConfigError: a column is not there, or no row is left.
    """
    _check_columns(content, "--where", list(where))
    taken = [
        row for row in content.rows if all(_same(row.cells.get(name), value) for name, value in where.items())
    ]
    if not taken:
        asked = " ".join(f"{name}={value}" for name, value in where.items())
        raise ConfigError([Problem(content.source, asked or None, "no row is left")])
    return taken


def groups(content: Content, rows: Sequence[Row], by: Sequence[str]) -> list[tuple[list[str], list[Row]]]:
    """Return the rows by the values of some columns, each group with its name, in order of appearance.

    Raises:
        ConfigError: a column is not there.
    """
    _check_columns(content, "--by", by)
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(str(row.cells.get(name)) for name in by), []).append(row)
    return [
        ([f"{name}={value}" for name, value in zip(by, key, strict=True)], each)
        for key, each in found.items()
    ]


def _check_columns(content: Content, option: str, names: Sequence[str]) -> None:
    absent = [name for name in names if name not in content.header]
    if absent:
        message = f"is no column of {content.source}, which has {listed(content.header, 'and')}"
        raise ConfigError([Problem(option, name, message) for name in absent])


def _same(cell: object, value: str) -> bool:
    number, other = as_number(cell), as_number(value)
    if number is not None and other is not None and number == other:
        return True
    return str(cell).strip() == value
