"""What was probably meant by a name that nothing has."""

from __future__ import annotations

import re
from collections.abc import Iterable

_SHORTEST_BEGINNING = 3  # letters that may stand for the name which they begin
_MOST_TYPOS = 2


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the one of ``names`` that was probably meant by ``name``, or None.

    It begins with ``name`` (the shortest such), or else it is the one with the fewest edits, as long as
    they are no more than two for five letters.
    """
    lower = {known.lower(): known for known in names}
    given = name.lower()
    longer = [known for known in lower if known.startswith(given)]
    if given in lower or (longer and len(given) >= _SHORTEST_BEGINNING):
        return lower[given] if given in lower else lower[min(longer, key=len)]
    edits = {known: distance(given, known) for known in lower}
    close = [known for known in lower if 5 * edits[known] <= 2 * max(len(known), len(given))]
    return lower[min(close, key=edits.__getitem__)] if close else None


def is_slip(name: str, close: str) -> bool:
    """Tell whether ``name`` is ``close`` mistyped or shortened, rather than another thing.

    Another number is no slip: it names another model or another GPU, as do b200 and h200.
    """
    if _numbers(name) != _numbers(close):
        return False
    return close.lower().startswith(name.lower()) or distance(name.lower(), close.lower()) <= _MOST_TYPOS


def distance(a: str, b: str) -> int:
    """Return how many letters to insert, delete, replace or swap with their neighbour to turn a into b.

    The optimal string alignment distance (Boytsov, "Indexing methods for approximate dictionary searching",
    ACM Journal of Experimental Algorithmics 16, 2011).
    """
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, letter in enumerate(a, start=1):
        before, last, row = row, before, [i]
        for j, other in enumerate(b, start=1):
            row.append(min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != other)))
            if i > 1 and j > 1 and (letter, other) == (b[j - 2], a[i - 2]):
                row[j] = min(row[j], last[j - 2] + 1)
    return row[-1]


def words(name: str) -> set[str]:
    """Return the words of a key."""
    return set(name.split("_"))


def _numbers(name: str) -> list[tuple[str, list[str]]]:
    """Return the numbers of an option, word by word, each with the letter that its word begins with."""
    parts = re.split(r"[-_/]", name.lower())
    return [(part[0], re.findall(r"\d+", part)) for part in parts if re.search(r"\d", part)]
