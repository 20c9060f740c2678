"""What is wrong with a trace file: every bad value with its place, as far as a reader wants to read it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from servesim.check import ConfigError, Problem

#: Bad values that an error lists one by one; the rest it counts.
MOST_LISTED = 20


class Faults:
    """The bad values found so far in the file ``path``."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._listed: list[Problem] = []
        self._unlisted = 0

    def add(self, problems: Iterable[Problem]) -> None:
        """Note bad values in the order of the file."""
        for problem in problems:
            if len(self._listed) < MOST_LISTED:
                self._listed.append(problem)
            else:
                self._unlisted += 1

    def check(self) -> None:
        """Raise a ConfigError if there is any."""
        if self._unlisted:
            more = f"{self._unlisted:,} more values are wrong"
            self._listed.append(Problem("path", self._path, more))
        if self._listed:
            raise ConfigError(self._listed)


def refuse(path: str, message: str) -> NoReturn:
    """Raise what is wrong with a file as a whole."""
    raise ConfigError([Problem("path", path, message)])
