"""The bar of a long run."""

import io

from rich.console import Console

from servesim.screen.progress import adding_up, points_bar, progress_bar


def bar(patience_s: float, terminal: bool, total: int | None = 200) -> str:
    out = Console(file=io.StringIO(), force_terminal=terminal, width=100)
    with progress_bar(total, out, patience_s) as tell:
        tell(50)
        tell(120)
    return out.file.getvalue()  # type: ignore[attr-defined]


def test_the_bar_waits_for_patience_to_end_and_for_somebody_to_watch() -> None:
    assert "120/200" in bar(0, terminal=True)
    assert bar(60, terminal=True) == ""
    assert bar(0, terminal=False) == ""


def test_a_bar_without_an_end_shows_how_many_there_were() -> None:
    assert "120" in bar(0, terminal=True, total=None)
    assert "?" not in bar(0, terminal=True, total=None).replace("[?25", "")


def test_a_sweep_shows_how_many_points_are_done_and_what_is_left() -> None:
    out = Console(file=io.StringIO(), force_terminal=True, width=100)
    with points_bar(out, 0) as tell:
        tell(5, 40)
        tell(6, 38)
    printed = out.file.getvalue()  # type: ignore[attr-defined]
    assert "points" in printed
    assert "6/38" in printed
    assert "left" in printed


def test_where_there_is_no_terminal_a_line_now_and_then_says_how_far_a_sweep_is() -> None:
    out = Console(file=io.StringIO(), force_terminal=False)
    with points_bar(out, every_s=0.0) as tell:
        tell(1, 1200)
        tell(2, 1200)
    lines = out.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert lines == ["1 of at most 1,200 points", "2 of at most 1,200 points"]
    silent = Console(file=io.StringIO(), force_terminal=False)
    with points_bar(silent) as tell:
        tell(1, 1200)
    assert silent.file.getvalue() == ""  # type: ignore[attr-defined]


def test_rounds_add_up_without_an_end() -> None:
    told: list[tuple[int, int | None]] = []
    tell = adding_up(lambda done, of: told.append((done, of)))
    for done in (1, 2, 3, 1, 2, 3, 1):
        tell(done, 3)
    assert told == [(count, None) for count in (1, 2, 3, 4, 5, 6, 7)]
