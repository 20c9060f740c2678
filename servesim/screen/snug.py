"""Tables on the screen whose figures are never cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions
from rich.measure import Measurement
from rich.table import Table

#: Wider than any table, to measure how wide one would like to be.
_ANY_WIDTH = 10_000


@dataclass(frozen=True)
class Snug:
    """A table of words in its first column and figures in the others, set as wide as there is room for.

    Columns are two blanks apart, or one; where that is still too wide, cells go on below.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterable[Table]:
        """Yield the wide table if it fits, else the narrow one."""
        wide = self._table(2, whole=True)
        yield wide if _width(wide, console) <= options.max_width else self._table(1, whole=False)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """Return the least and the greatest width."""
        least = Measurement.get(console, options, self._table(1, whole=False)).minimum
        return Measurement(least, _width(self._table(2, whole=True), console))

    def _table(self, gap: int, whole: bool) -> Table:
        table = Table(
            box=None,
            padding=(0, gap, 0, 0),
            header_style="",
            show_edge=False,
            show_header=any(self.headings),
        )
        for index, heading in enumerate(self.headings):
            table.add_column(
                heading,
                justify="right" if index else "left",
                no_wrap=whole,
                overflow="fold",
            )
        for row in self.rows:
            table.add_row(*row)
        return table


def _width(table: Table, console: Console) -> int:
    """Return how wide a table is where nothing of it is cut."""
    return Measurement.get(console, console.options.update(width=_ANY_WIDTH), table).maximum
