"""Tables on the screen whose figures are never cut."""

import io

import pytest
from rich.console import Console
from rich.table import Table

from servesim.screen.console import print_lines
from servesim.screen.snug import Snug

ROWS = [["TTFT (ms)", "10,290,234", "1,000,000"], ["ITL (ms)", "7", "12.3"]]


@pytest.mark.parametrize("width", [12, 20, 32, 36, 40, 80])
def test_no_figure_is_cut_however_narrow(width: int) -> None:
    grid = Table.grid()
    grid.add_row(Snug(["", "sent\nout", "n"], ROWS))
    out = Console(file=io.StringIO(), width=width)
    print_lines(out, grid)
    printed = out.file.getvalue()  # type: ignore[attr-defined]
    assert "\u2026" not in printed
    letters = sorted("".join(printed.split()))
    assert letters == sorted("".join("".join(row) for row in [["sent", "out", "n"], *ROWS]).replace(" ", ""))
    assert ("10,290,234  1,000,000" in printed) == (width >= 36)
    assert ("10,290,234 1,000,000" in printed) == (width == 32)
