"""Many scenarios from few compositions: components that do not change are built and checked once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from servesim.config.compositions import Compositions
from servesim.config.groups import Groups
from servesim.config.layers import Completed
from servesim.config.loading import Built, build_completed
from servesim.config.overrides import Overrides
from servesim.scenario import Scenario


class Expansion:
    """Makes scenarios of override lists, as :func:`servesim.load` does, but many of them quickly."""

    def __init__(self, groups: Groups, config_dir: Path | None = None) -> None:
        self._groups = groups
        self._compositions = Compositions(groups, config_dir)
        self._last: tuple[Mapping[str, Any], Scenario] | None = None

    def scenario(self, typed: Sequence[str]) -> Built:
        """Return the scenario that overrides describe, and what is wrong with them."""
        overrides = Overrides(typed, self._groups)
        composition, problems = self._compositions.of(overrides.ready)
        if composition is None:
            return Built(None, [*overrides.problems, *problems], [])
        whole = composition.complete(composition.values)
        built = self._built(whole, overrides.misplaced)
        refused = [*overrides.problems, *problems, *built.refused]
        return built._replace(refused=refused, unfit=[] if refused else built.unfit)

    def _built(self, whole: Completed, misplaced: Sequence[str]) -> Built:
        ready = self._unchanged(whole.values)
        built = build_completed(whole, misplaced, ready)
        if built.refused and ready:  # say it as if nothing had been at hand, with all names that were meant
            return build_completed(whole, misplaced)
        if built.scenario is not None and not built.refused:
            self._last = whole.values, built.scenario
        return built

    def _unchanged(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the components of the scenario before this one whose values are the same."""
        if self._last is None:
            return {}
        before, scenario = self._last
        return dict(_shared(scenario, before, values))


def _shared(
    component: Any, before: Mapping[str, Any], values: Mapping[str, Any]
) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a component whose values are what they were, by their paths."""
    for field in fields(component):
        part, old, new = getattr(component, field.name), before.get(field.name), values.get(field.name)
        if is_dataclass(part) and isinstance(old, Mapping) and isinstance(new, Mapping):
            if old == new:
                yield field.name, part
            elif old.get("kind") == new.get("kind"):
                yield from ((f"{field.name}.{path}", inner) for path, inner in _shared(part, old, new))
