"""Rows of a table: those to be taken, and the groups that they fall into."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from servesim.check import ConfigError, Problem
from servesim.validate.readers.content import Content, Row
from servesim.validate.readers.problems import as_number
from servesim.validate.readers.spelling import POINTS, REQUESTS, named, plain
from servesim.words import listed


def conditions(text: str) -> dict[str, str]:
    """Return the values of columns that ``"backend=vllm tp=4"`` asks for.

    Raises:
        ConfigError: a word is no condition, or a column has several.
    """
    words = text.split()
    found = [
        Problem("--where", word, "must be COLUMN=VALUE") for word in words if not all(word.partition("="))
    ]
    pairs = [(name, value) for name, _, value in (word.partition("=") for word in words)]
    names = [name for name, _ in pairs]
    twice = dict.fromkeys(name for name in names if names.count(name) > 1)
    found += [Problem("--where", name, "is given twice; rows must have all values") for name in twice]
    if found:
        raise ConfigError(found)
    return dict(pairs)


def chosen(content: Content, where: Mapping[str, str]) -> list[Row]:
    """Return the rows whose columns have these values; numbers are compared as numbers.

    Raises:
        ConfigError: a column is not there, or no row is left.
    """
    columns = _columns(content, "--where", list(where))
    pairs = list(zip(columns, where.values(), strict=True))
    taken = [row for row in content.rows if all(same(row.cells.get(name), value) for name, value in pairs)]
    if not taken:
        asked = " ".join(f"{name}={value}" for name, value in where.items())
        raise ConfigError([Problem(content.source, asked or None, "no row is left")])
    return taken


def groups(
    content: Content, rows: Sequence[Row], by: Sequence[str]
) -> list[tuple[dict[str, str], list[Row]]]:
    """Return the rows by the values of some columns, each group with these, in order of appearance.

    Raises:
        ConfigError: a column is not there.
    """
    columns = _columns(content, "--by", by)
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(str(row.cells.get(name)) for name in columns), []).append(row)
    return [(dict(zip(by, key, strict=True)), each) for key, each in found.items()]


def _columns(content: Content, option: str, names: Sequence[str]) -> list[str]:
    """Return the columns that names stand for: a column's own, or another spelling of what it holds.

    Raises:
        ConfigError: listing the names of no column.
    """
    found = {name: name if name in content.header else _spelt(content, name) for name in names}
    if absent := [name for name, column in found.items() if column is None]:
        message = f"is no column of {content.source}, which has {listed(content.header, 'and')}"
        raise ConfigError([Problem(option, name, message) for name in absent])
    return [column for column in found.values() if column is not None]


def _spelt(content: Content, name: str) -> str | None:
    """Return the column that holds what a name is another spelling of: ``tp``, ``isl``, ``output_tokens``."""
    for spellings in (POINTS, REQUESTS):
        meaning = meaning_of(name, spellings)
        if meaning is not None and meaning in (columns := named(content.header, spellings)):
            return columns[meaning].name
    return None


def meaning_of(name: str, spellings: Mapping[str, Collection[str]]) -> str | None:
    """Return what a name is a spelling of; None where it is of nothing known."""
    text = plain(name)[0]
    return next((meaning for meaning, known in spellings.items() if text in (meaning, *known)), None)


def same(cell: object, value: str) -> bool:
    """Tell whether a cell has a value, as a number or else as a word."""
    number, other = as_number(cell), as_number(value)
    if number is not None and other is not None and number == other:
        return True
    return str(cell).strip() == value
