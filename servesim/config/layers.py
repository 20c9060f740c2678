"""Values laid under what has been typed: whatever files and flags say, a key that was typed wins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from typing import Any, NamedTuple

from servesim.check import Problem
from servesim.config.nested import value_at, with_value

#: The field of a scenario that holds what there is to say of files and flags.
NOTES = "notes"


class Completed(NamedTuple):
    """A composed mapping that was made whole, and what is wrong with what it was made whole from.

    ``origins`` tell where values are from that nobody typed, by key; ``sources`` the keys of the values that
    others were worked out from; ``files`` are those that were read.
    """

    values: dict[str, Any]
    problems: list[Problem]
    origins: Mapping[str, str]
    files: tuple[str, ...]
    sources: Mapping[str, tuple[str, ...]]

    def told(self, found: Iterable[Problem]) -> list[Problem]:
        """Return problems, traced, without those of values that follow from others that are wrong."""
        found = list(found)
        wrong = {problem.path for problem in found}
        return [
            self.traced(problem) for problem in found if wrong.isdisjoint(self.sources.get(problem.path, ()))
        ]

    def traced(self, problem: Problem) -> Problem:
        """Return a problem with where its value is from, if nobody typed it."""
        origin = self.origins.get(problem.path)
        return problem if origin is None else replace(problem, message=f"{problem.message} ({origin})")


class Layers:
    """Lays values over a composed mapping, but not over those of keys that were typed.

    Attributes:
        values: the mapping as it is by now.
        problems: what is wrong with the files and flags that values come from.
        notes: what a reader of the results should know of them.
        files: paths of the files that were read.

    """

    def __init__(self, values: Mapping[str, Any], typed: Set[str]) -> None:
        self.values = dict(values)
        self.typed = typed
        self.problems: list[Problem] = []
        self.notes: list[str] = []
        self.files: list[str] = []
        self._origins: dict[str, str] = {}
        self._sources: dict[str, tuple[str, ...]] = {}

    def lay(self, key: str, value: Any, origin: str, sources: tuple[str, ...] = ()) -> bool:
        """Set a key unless it was typed; tell whether it was set.

        An option of a group keeps the keys below it that were typed: they win over its own, and add to it.
        ``sources`` are the keys of values that it was worked out from.
        """
        *path, name = key.split(".")
        is_option = isinstance(value, Mapping) and "kind" in value
        below = self._typed_below(key)
        outdone = self._was_chosen(key) or (f"{key}.kind" in below if is_option else bool(below))
        if outdone or not isinstance(value_at(self.values, path), Mapping):
            return False
        for place in below:
            names = place.split(".")
            value = with_value(value, names[len(path) + 1 :], value_at(self.values, names))
        self.values = with_value(self.values, [*path, name], value)
        self._origins[key] = origin
        self._sources[key] = sources
        return True

    def _was_chosen(self, key: str) -> bool:
        """Tell whether a key was typed, or the choice of an option in its place."""
        return any(place.replace("/", ".") == key for place in self.typed)

    def _typed_below(self, key: str) -> list[str]:
        """Return the keys below a key that were typed, and the choices of options there."""
        places = (place.replace("/", ".") for place in self.typed)
        return sorted(place for place in places if place.startswith(f"{key}."))

    def whole(self) -> Completed:
        """Return what has come of it, notes included."""
        said = self.values.get(NOTES)
        notes = [*(said if isinstance(said, list) else []), *self.notes]
        values = {**self.values, NOTES: notes} if self.notes else self.values
        return Completed(values, self.problems, self._origins, tuple(self.files), self._sources)
