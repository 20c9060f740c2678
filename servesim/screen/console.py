"""The console that the screen is written on."""

from __future__ import annotations

import os
from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.segment import Segment, Segments

PLAIN_WIDTH = 100  # columns of the output where it is not a terminal and COLUMNS does not say


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to the command what to do when nobody reads any more; rich would exit with 1."""
        raise BrokenPipeError


def console(stderr: bool = False) -> Console:
    """Return a console; where nobody is watching, without colours and as wide as COLUMNS says."""
    terminal = _Console(stderr=stderr, highlight=False)
    if terminal.is_terminal:
        return terminal
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdecimal() and int(columns) else PLAIN_WIDTH
    return _Console(stderr=stderr, highlight=False, width=width)


def print_lines(out: Console, *parts: RenderableType) -> None:
    """Print the parts one below the other, without blanks at the ends of lines."""
    lines = Segment.split_lines(out.render(Group(*parts)))
    out.print(Segments(piece for line in lines for piece in _trimmed(line)), end="")


def _trimmed(line: list[Segment]) -> Iterator[Segment]:
    """Yield the pieces of a line up to its last letter, and a line break."""
    while line and not line[-1].text.rstrip():
        line.pop()
    yield from line[:-1]
    for text, style, control in line[-1:]:
        yield Segment(text.rstrip(), style, control)
    yield Segment.line()
