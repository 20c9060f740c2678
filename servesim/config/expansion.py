"""Many scenarios from few compositions: Hydra composes a combination of options once at most.

What sets a key to a plain value, or chooses an option that is a plain file, is laid over the composed mapping
in this process, and components that it does not touch are shared: a tenth of a second for a composition, a
fraction of a millisecond for a scenario.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

from servesim.check import Problem
from servesim.config.compose import Composition, compose
from servesim.config.groups import Groups
from servesim.config.loading import Built, build_completed
from servesim.config.nested import value_at, with_value
from servesim.config.overrides import Overrides, parsed
from servesim.config.plain_options import PlainOptions
from servesim.scenario import Scenario

_KEY = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


class Setting(NamedTuple):
    """A key, and the plain value that an override gives it, or the values of the option that it chooses."""

    key: str
    value: Mapping[str, Any] | str | int | float | bool | None


class Expansion:
    """Makes scenarios of override lists, as :func:`servesim.load` does, but many of them quickly."""

    def __init__(self, groups: Groups, config_dir: Path | None = None) -> None:
        self._groups, self._config_dir = groups, config_dir
        self._options = PlainOptions(groups)
        self._templates: dict[tuple[str, ...], _Template] = {}

    def scenario(self, typed: Sequence[str]) -> Built:
        """Return the scenario that overrides describe, and what is wrong with them."""
        overrides = Overrides(typed, self._groups)
        settings = {text: setting for text in overrides.ready if (setting := self._setting(text))}
        template = self._template([text for text in overrides.ready if text not in settings])
        if not template.takes(settings.values(), self._options):
            template, settings = self._template(overrides.ready), {}
        built = template.scenario(settings.values(), overrides.misplaced)
        refused = [*overrides.problems, *template.problems, *built.refused]
        return built._replace(refused=refused, unfit=[] if refused else built.unfit)

    def _setting(self, text: str) -> Setting | None:
        """Return what an override sets; None where only Hydra can do what it asks."""
        if text.startswith("++"):
            return _plain_setting(text)
        group, _, option = text.partition("=")
        values = self._options.values(group, option) if group in self._groups else None
        return None if values is None else Setting(group, values)

    def _template(self, overrides: Sequence[str]) -> _Template:
        key = tuple(overrides)
        if key not in self._templates:
            self._templates[key] = _Template(*compose(list(overrides), self._config_dir))
        return self._templates[key]


class _Template:
    """A composition, from which scenarios differ by some values; components are built once and shared."""

    def __init__(self, composition: Composition | None, problems: list[Problem]) -> None:
        self.composition, self.problems = composition, problems
        self._last: tuple[Mapping[str, Any], Scenario] | None = None

    def takes(self, settings: Iterable[Setting], options: PlainOptions) -> bool:
        """Tell whether settings can be laid over the composition.

        They cannot where a value was taken from another key, or where a key leads into a list; an option
        cannot where what is in its place does not come from the option chosen there alone.
        """
        if self.composition is None or self.composition.fixed:
            return not any(settings)
        for key, value in settings:
            if isinstance(value, Mapping):
                chosen = self.composition.choices.get(key)
                if chosen is None or options.values(key, chosen) != self._at(key.split("/")):
                    return False
            elif isinstance(self._at(key.split(".")[:-1]), list):
                return False
        return True

    def scenario(self, settings: Iterable[Setting], misplaced: Sequence[str]) -> Built:
        """Return the scenario with some values set, options first."""
        if self.composition is None:
            return Built(None, [], [])
        values: dict[str, Any] = self.composition.values
        ordered = sorted(settings, key=lambda setting: not isinstance(setting.value, Mapping))
        for key, value in ordered:
            values = with_value(values, re.split(r"[./]", key), value)
        whole = self.composition.complete(values, (key for key, _ in ordered))
        ready = self._unchanged(whole.values)
        built = build_completed(whole, misplaced, ready)
        if built.refused and ready:  # say it as if nothing had been at hand, with all names that were meant
            return build_completed(whole, misplaced)
        if built.scenario is not None and not built.refused:
            self._last = whole.values, built.scenario
        return built

    def _at(self, names: Sequence[str]) -> Any:
        """Return what is at a place; a list or a value on the way to it stands for it."""
        return value_at(self.composition.values if self.composition else None, names)

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
            else:
                yield from ((f"{field.name}.{path}", inner) for path, inner in _shared(part, old, new))


def _plain_setting(text: str) -> Setting | None:
    """Return the key that ``++key=value`` sets to a plain value; None where it does more."""
    override = parsed(text)
    if override is None or override.package is not None or override.is_sweep_override():
        return None
    key, value = override.key_or_group, override.value()
    if not _KEY.fullmatch(key) or not (value is None or isinstance(value, (str, int, float, bool))):
        return None
    return None if isinstance(value, str) and "${" in value else Setting(key, value)
