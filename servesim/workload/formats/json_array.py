"""A long list in JSON, an item at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from servesim.workload.formats.faults import refuse


def items(pieces: Iterator[str]) -> Iterator[Any]:
    """Yield the items of the list whose text comes in these pieces; memory holds one item at a time.

    Raises ValueError where it is no list.
    """
    text = _Text(pieces)
    if text.letter() != "[":
        raise ValueError("is no list")
    text.skip()
    ending = text.letter()
    if ending == "]":
        text.skip()
    while ending != "]":
        yield text.value()
        ending = text.letter()
        text.skip()
        if ending not in ("]", ","):
            raise ValueError("ends before its list does" if not ending else f"has {ending!r} between items")
    if behind := text.letter():
        raise ValueError(f"has {behind!r} behind its list")


def read_items(pieces: Iterator[str], path: str, what: str) -> Iterator[Any]:
    """Yield the items of the list that the file ``path`` should be; ``what`` names the list.

    Raises ConfigError where it is none.
    """
    try:
        yield from items(pieces)
    except UnicodeDecodeError:
        raise
    except (ValueError, RecursionError) as error:
        refuse(path, f"must be {what}, but {error}")


class _Text:
    """Text that comes in pieces, and the place that has been reached in it."""

    def __init__(self, pieces: Iterator[str]) -> None:
        self._pieces = pieces
        self._decode = json.JSONDecoder().raw_decode
        self._text, self._at = "", 0

    def letter(self) -> str:
        """Return the next letter that is not blank; empty at the end."""
        while True:
            while self._at < len(self._text):
                if not (letter := self._text[self._at]).isspace():
                    return letter
                self._at += 1
            if not self._more(1):
                return ""

    def skip(self) -> None:
        """Go past the letter."""
        self._at += 1

    def value(self) -> Any:
        """Return the value that begins here; of a long one, twice as much text is taken each time."""
        self.letter()
        while True:
            try:
                value, end = self._decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if not self._more(len(self._text) - self._at):
                    raise ValueError(f"is not JSON: {error.msg}") from None
                continue
            if end == len(self._text) and self._more(1):  # a number may go on in the next piece
                continue
            self._at = end
            return value

    def _more(self, letters: int) -> bool:
        """Take so many letters more, if there are any, and forget those behind."""
        pieces: list[str] = []
        for length in accumulate(map(len, self._taken(pieces))):
            if length >= letters:
                break
        self._text, self._at = self._text[self._at :] + "".join(pieces), 0
        return bool(pieces)

    def _taken(self, pieces: list[str]) -> Iterator[str]:
        for piece in self._pieces:
            pieces.append(piece)
            yield piece
