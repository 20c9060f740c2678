"""How wide the screen is, and the ends of its lines."""

import pytest

from servesim.screen.console import console
from tests.screen.screens import screen


def test_no_line_ends_in_blanks() -> None:
    assert all(line == line.rstrip() for line in screen().splitlines())


@pytest.mark.parametrize(("columns", "width"), [("80", 80), (None, 100), ("", 100), ("0", 100), ("x", 100)])
def test_columns_sets_the_width_where_nobody_watches(
    columns: str | None, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns) if columns is not None else monkeypatch.delenv("COLUMNS", False)
    assert console().width == width
