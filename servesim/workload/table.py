"""Tables of numbers in a configuration: a list of rows, each with one number per column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from servesim.check import Problem

Table = Sequence[Sequence[float]]


def row_problems(name: str, table: Table, columns: str, most: Sequence[float]) -> Iterator[Problem]:
    """Yield each row of ``table`` that is not one number per column, from 0 to the column's ``most``.

    ``columns`` names the columns and their units for the reader; ``name`` is the path of the table.
    """
    if not _is_list(table) or not table:
        yield Problem(name, table, f"must be a list of rows [{columns}]")
        return
    bounds = ", ".join(f"{limit:g}" for limit in most)
    for index, row in enumerate(table):
        if not (_is_list(row) and len(row) == len(most) and all(map(_is_within, row, most))):
            message = f"must be [{columns}], numbers of at least 0 and at most {bounds}"
            yield Problem(f"{name}[{index}]", row, message)


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _is_within(value: object, most: float) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and 0 <= value <= most  # type: ignore[operator]
