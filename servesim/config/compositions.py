"""What Hydra has composed, and what follows from it: a combination of options is composed once at most.

What sets a key to a plain value, or chooses an option that is a plain file, is laid over a composition in
this process: a tenth of a second for a composition, a fraction of a millisecond for what follows from it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from servesim.check import Problem
from servesim.config.compose import Composition, compose
from servesim.config.groups import Groups, conf_dir
from servesim.config.nested import value_at, with_value
from servesim.config.overrides import parsed, place
from servesim.config.plain_options import PlainOptions
from servesim.config.yaml_files import FileState

_KEY = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
#: What files alone do not decide: values of the environment, folders to look into.
_NOT_OF_FILES = re.compile(r"\$\{|^[+~]*hydra[./]")
_MOST_KEPT = 512

#: What :func:`compose` returns.
Composed = tuple[Composition | None, list[Problem]]


def composed(overrides: Sequence[str], config_dir: Path | None = None) -> Composed:
    """Return what :func:`compose` does, from what it returned before where that cannot have changed since.

    That is so for the files of ``conf/`` while all of them are as they were, and for overrides that ask for
    nothing else. Files of the user's own are read again each time.
    """
    if config_dir is not None or any(map(_NOT_OF_FILES.search, overrides)):
        return compose(list(overrides), config_dir)
    folder = conf_dir()
    composition, problems = _shipped(folder, tuple(_state(folder))).of(overrides)
    if composition is not None and composition.fixed:
        return compose(list(overrides))
    return composition, list(problems)


@lru_cache(maxsize=1)
def _shipped(folder: Path, state: tuple[FileState, ...]) -> Compositions:
    return Compositions(Groups([folder]))


def _state(folder: str | Path) -> Iterator[FileState]:
    """Yield the states of the YAML files below a folder."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _state(entry.path)
            elif entry.name.endswith(".yaml"):
                yield FileState.of(entry.path, entry.stat())


class Setting(NamedTuple):
    """A key, and the plain value that an override gives it; or a group, and the values of its ``option``."""

    key: str
    value: Mapping[str, Any] | str | int | float | bool | None
    option: str | None = None

    @property
    def path(self) -> list[str]:
        """The names on the way to the value."""
        return re.split(r"[./]", self.key)


class Compositions:
    """Composes overrides with the files of some folders, as they are when it first needs them."""

    def __init__(self, groups: Groups, config_dir: Path | None = None) -> None:
        self._groups, self._config_dir = groups, config_dir
        self._options = PlainOptions(groups)
        self._known: dict[tuple[str, ...], Composed] = {}

    def of(self, overrides: Sequence[str]) -> Composed:
        """Return what :func:`compose` makes of overrides."""
        settings, rest = self._apart(overrides)
        composition, problems = self._composed(rest)
        if composition is None or not self._takes(composition, settings):
            return self._composed(overrides)
        return self._with(composition, settings), problems

    def _apart(self, overrides: Iterable[str]) -> tuple[list[Setting], list[str]]:
        """Return settings that can be laid over what Hydra makes of the rest, and the rest.

        No setting is apart from a value of the rest that leads to the same place: the order of both counts.
        """
        each = [(text, self._setting(text)) for text in overrides]
        rest = [text for text, setting in each if setting is None]
        places = [place(text).split(".") for text in rest if text.startswith(("+", "~"))]
        settings = [setting for _, setting in each if setting is not None]
        if any(_meet(setting.path, other) for setting in settings for other in places):
            return [], [text for text, _ in each]
        return settings, rest

    def _setting(self, text: str) -> Setting | None:
        """Return what an override sets; None where only Hydra can do what it asks."""
        if _NOT_OF_FILES.search(text):
            return None
        if text.startswith("++"):
            return None if place(text) in self._groups else _plain_setting(text)
        group, _, option = text.partition("=")
        values = self._options.values(group, option) if group in self._groups else None
        return None if values is None else Setting(group, values, option)

    def _composed(self, overrides: Sequence[str]) -> Composed:
        key = tuple(overrides)
        if key not in self._known:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            self._known[key] = compose(list(overrides), self._config_dir)
        return self._known[key]

    def _takes(self, composition: Composition, settings: Sequence[Setting]) -> bool:
        """Tell whether settings can be laid over a composition.

        They cannot where a value was taken from another key, or where a key leads into a list; an option
        cannot where what is in its place does not come from the option chosen there alone.
        """
        if composition.fixed:
            return not settings
        for setting in settings:
            names = setting.path
            if setting.option is None:
                if isinstance(value_at(composition.values, names[:-1]), list):
                    return False
            else:
                chosen = composition.choices.get(setting.key)
                here = value_at(composition.values, names)
                if chosen is None or self._options.values(setting.key, chosen) != here:
                    return False
        return True

    @staticmethod
    def _with(composition: Composition, settings: Iterable[Setting]) -> Composition:
        """Return a composition with some values set, options first."""
        values: dict[str, Any] = composition.values
        choices = dict(composition.choices)
        ordered = sorted(settings, key=lambda setting: setting.option is None)
        for setting in ordered:
            values = with_value(values, setting.path, setting.value)
            if setting.option is not None:
                choices[setting.key] = setting.option
        typed = composition.typed.union(setting.key for setting in ordered)
        return composition._replace(values=values, choices=choices, typed=typed)


def _meet(one: Sequence[str], other: Sequence[str]) -> bool:
    """Tell whether one of two places is the other, or in it."""
    return all(a == b for a, b in zip(one, other, strict=False))


def _plain_setting(text: str) -> Setting | None:
    """Return the key that ``++key=value`` sets to a plain value; None where it does more."""
    override = parsed(text)
    if override is None or override.package is not None or override.is_sweep_override():
        return None
    key, value = override.key_or_group, override.value()
    plain = _KEY.fullmatch(key) and (value is None or isinstance(value, (str, int, float, bool)))
    return Setting(key, value) if plain else None  # type: ignore[arg-type]
