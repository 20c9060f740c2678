"""What is wrong with a trace file: every bad value with its place, as far as a reader wants to read it."""

from __future__ import annotations

import re
from bisect import insort
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, NoReturn

from servesim.check import ConfigError, Problem
from servesim.words import listed

#: Places of the same fault that an error lists; the rest it counts.
MOST_PLACES = 3
#: Bad values that an error lists one by one; the rest it counts.
MOST_LISTED = 20

_ROW = re.compile(r"path, [a-z]+ (\d+)")


class Recurring(NamedTuple):
    """What may be wrong with every object alike, such as a key that none has.

    ``alone`` tells of one object; ``what`` of many: "has no output_length".
    """

    place: str
    what: str
    alone: Problem


class Faults:
    """What has been found wrong so far in the file ``path``."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._listed: list[Problem] = []
        self._unlisted = 0
        self._recurring: dict[str, list[Recurring]] = {}
        self._counts: Counter[str] = Counter()

    def add(self, found: Iterable[Problem | Recurring]) -> None:
        """Note faults; those of one row are told in the order in which they come."""
        for each in found:
            if isinstance(each, Recurring):
                self._counts[each.what] += 1
                known = self._recurring.setdefault(each.what, [])
                if len(known) < MOST_PLACES:
                    known.append(each)
                continue
            insort(self._listed, each, key=_row)
            if len(self._listed) > MOST_LISTED:
                self._listed.pop()
                self._unlisted += 1

    def check(self) -> None:
        """Raise a ConfigError if there is any: what recurs is told once, with how often and where first."""
        found = [self._told(known) for known in self._recurring.values()] + self._listed
        if self._unlisted:
            more = f"{self._unlisted:,} more values are wrong"
            found.append(Problem("path", self._path, more))
        if found:
            raise ConfigError(found)

    def _told(self, known: list[Recurring]) -> Problem:
        count = self._counts[known[0].what]
        if count == 1:
            return known[0].alone
        places = [each.place for each in known]
        places += [f"{count - len(known):,} more"] if count > len(known) else []
        return Problem("path", self._path, f"{known[0].what}: {count:,} times, {listed(places, 'and')}")


def _row(problem: Problem) -> int:
    """Return the number of the row that a problem names, such as that of "path, line 3, timestamp"."""
    found = _ROW.match(problem.path)
    return int(found[1]) if found else 0


def no_request(path: str, left_out: Iterable[tuple[str, int]]) -> NoReturn:
    """Raise that a file has no request, and what was left out of it."""
    why = [f"{count:,} {reason}" for reason, count in left_out]
    refuse(path, f"has no request in it: {listed(why, 'and')} left out" if why else "has no request in it")


def refuse(path: str, message: str) -> NoReturn:
    """Raise what is wrong with a file as a whole."""
    raise ConfigError([Problem("path", path, message)])
