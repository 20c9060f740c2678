"""A bar that shows how far a run has come, where it lasts long enough for anybody to wonder."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

PATIENCE_S = 2.0  # a run that is over sooner shows no bar


EVERY_S = 30.0  # between the lines that stand for a bar where there is no terminal


class _CountColumn(ProgressColumn):
    """How many there have been, and of how many where that is known."""

    def render(self, task: Task) -> Text:
        total = "" if task.total is None else f"/{task.total:,.0f}"
        return Text(f"{task.completed:,.0f}{total}", style="progress.download")


@contextmanager
def progress_bar(
    total: int | None, out: Console, patience_s: float = PATIENCE_S, counted: str = "requests sent"
) -> Iterator[Callable[[int], None]]:
    """Yield a function to tell how many have been ``counted`` so far; after a while a bar shows it.

    There is no bar where ``out`` is no terminal; ``total`` is None where nobody knows it.
    """
    columns = (TextColumn(counted), BarColumn(), _CountColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=out, transient=True)
    with _shown_later(bar, total, patience_s) as tell:
        yield lambda sent: tell(sent, total)


@contextmanager
def points_bar(
    out: Console, patience_s: float = PATIENCE_S, every_s: float = EVERY_S, counted: str = "points"
) -> Iterator[Callable[[int, int | None], None]]:
    """Yield a function to tell how many points of a sweep, or what is ``counted``, are done, of how many.

    That many is the most that there will be, or None where nobody knows it.

    After a while a bar shows it, with the time that is left; where ``out`` is no terminal, a line every
    ``every_s`` seconds.
    """
    if not out.is_terminal:
        yield _lines(out, every_s, counted)
        return
    left = TimeRemainingColumn(elapsed_when_finished=True)
    bar = Progress(
        TextColumn(counted),
        BarColumn(),
        _CountColumn(),
        left,
        TextColumn("left"),
        console=out,
        transient=True,
    )
    with _shown_later(bar, None, patience_s) as tell:
        yield tell


def adding_up(tell: Callable[[int, int | None], None]) -> Callable[[int, int], None]:
    """Return a function that is told of one round after another, and tells how many there were in all."""
    before = last = 0

    def told(done: int, of: int) -> None:
        nonlocal before, last
        if done <= last:
            before += last
        last = done
        tell(before + done, None)

    return told


def _lines(out: Console, every_s: float, counted: str) -> Callable[[int, int | None], None]:
    """Return a function that writes how many there are, at most every ``every_s`` seconds."""
    told_s = time.monotonic()

    def tell(done: int, of: int | None) -> None:
        nonlocal told_s
        most = "" if of is None else f" of at most {of:,}"
        if time.monotonic() - told_s >= every_s:
            told_s = time.monotonic()
            out.print(f"{done:,}{most} {counted}", highlight=False)

    return tell


@contextmanager
def _shown_later(
    bar: Progress, total: int | None, patience_s: float
) -> Iterator[Callable[[int, int | None], None]]:
    """Yield a function that updates a bar, and shows it when some time has passed."""
    task = bar.add_task("", total=total)
    out, started_s = bar.console, time.monotonic()

    def tell(done: int, of: int | None) -> None:
        bar.update(task, completed=done, total=of)
        if not bar.live.is_started and out.is_terminal and time.monotonic() - started_s >= patience_s:
            bar.start()

    try:
        yield tell
    finally:
        if bar.live.is_started:
            bar.stop()
