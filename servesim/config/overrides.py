"""What the user typed, made ready for Hydra.

Hydra stops at the first override it does not like. So that every mistake is listed in one message, choices
of options are looked up here, and values are handed on as ``++key=value``, which Hydra lets pass whatever
the key: unknown keys and bad values then all reach the check of the built scenario.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from math import ceil, inf
from pathlib import Path

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Override, QuotedString, RangeSweep, ValueType
from hydra.errors import HydraException

from servesim.check import Problem
from servesim.config.groups import Groups

_TRANSFER_OVERHEAD = "cluster.transfer.overhead"
_POOL_GPU = re.compile(r"cluster\.\w+\.gpu")
_DRAFT_MODEL = "scheduler.speculation.model"
_NONE = "none"  # the option of a group with which there is nothing of it; also typed as null
_NO_OVERRIDE = "is not an override; write key=value"
#: The most values of a sweep, and the most points of several.
MOST_POINTS = 100_000
_FLAGS = "engine_args"
_FREE_TEXT = re.compile(
    r"(.*\.)?path|model\.hf_config|engine_args"
)  # keys whose values are text, whatever Hydra would read in them


class Overrides:
    """A command line's overrides: ``ready`` for Hydra, and the ``problems`` of those left out.

    ``misplaced`` are the places whose choice of an option was left out: whatever else were said about
    them would be said about the default instead. Lists of values are allowed only when ``sweeping``.
    """

    def __init__(self, typed: Iterable[str], groups: Groups, sweeping: bool = False) -> None:
        self.ready: list[str] = []
        self.problems: list[Problem] = []
        self.misplaced: list[str] = []
        self._groups = groups
        self._sweeping = sweeping
        self._jobs = 1.0
        self._choices: dict[str, list[str]] = {}
        for text in typed:
            self._add(text)
        self._let_cluster_follow()

    def first_values(self) -> list[str]:
        """Return what is ready, each sweep narrowed to its first value."""
        if not self._sweeping:
            return self.ready
        return [first for text in self.ready if (first := _first_value(text))]

    def _add(self, text: str) -> None:
        key, equals, value = text.partition("=")
        if text.startswith("~") or (equals and key.startswith(("+", "hydra.", "hydra/"))):
            self._hand_on(text)
        elif not (equals and key):
            self.problems.append(Problem(text, None, _NO_OVERRIDE))
        elif _POOL_GPU.fullmatch(key) and not value.startswith("{"):
            self._choose(f"gpu@{key}", value)
        elif key == _DRAFT_MODEL and not value.startswith("{"):
            self._choose(f"model@{key}", value)
        elif key == _TRANSFER_OVERHEAD and value != "null" and not value.startswith("{"):
            self._choose(f"transfer_overhead@{key}", value)
        elif key in self._groups or "@" in key or "/" in key:
            self._choose(key, value)
        else:
            self._set(key, value)

    def _hand_on(self, text: str) -> None:
        """Add an override of Hydra's own kinds as it stands, if it is one."""
        override = parsed(text)
        if override is None or not override.key_or_group:
            self.problems.append(Problem(text, None, _NO_OVERRIDE))
        else:
            self.ready.append(text)

    def _choose(self, key: str, value: str) -> None:
        """Add the choice of an option of a group."""
        override = parsed(f"{key}={value}")
        if self._is_stray_sweep(override, key, value):
            return
        names = [value] if override is None else _names(override, value)
        if "null" in names and _NONE in self._groups.options(key.partition("@")[0]):
            names = [_NONE if name == "null" else name for name in names]
            value = ",".join(names)
        found = [problem for name in names if (problem := self._groups.problem(key, name))]
        self.problems += found
        if found:
            self.misplaced.append(key.rpartition("@")[2].replace("/", "."))
        else:
            self.ready.append(f"{key}={value}")
            self._choices[key] = names

    def _set(self, key: str, value: str) -> None:
        """Add the value of a key; what Hydra cannot read, and all free text, is quoted."""
        override = parsed(f"++{key}={value}")
        if is_free_text(key) and value != "null":
            if not (self._sweeping and is_sweep(override)) and not value.startswith(("'", '"')):
                override = None
        elif self._is_stray_sweep(override, key, value):
            return
        if override is None and "${" in value and (key == _FLAGS or Path(value).exists()):
            value = value.replace(
                "${", r"\${"
            )  # a shell's, or a file of this very name: not another key's value
        text = f"++{key}={value if override else quoted(value)}"
        if override or parsed(text):
            self.ready.append(text)
        else:
            self.problems.append(Problem(f"{key}={value}", None, _NO_OVERRIDE))

    def _is_stray_sweep(self, override: Override | None, key: str, value: str) -> bool:
        if override is None or not is_sweep(override):
            return False
        message = "several values are several runs: add -m"
        if self._sweeping:
            size = sweep_size(override)
            self._jobs *= max(size, 1)
            if self._jobs > MOST_POINTS:
                message = f"makes more than {MOST_POINTS:,} runs, which is the most of one command"
                self.problems.append(Problem(key, value, message))
                return True
            if size or key in self._groups:
                return False
            message = (
                "stands for options of a group, and this is none; write the values out: key=value1,value2"
            )
        self.problems.append(Problem(key, value, message))
        return True

    def _let_cluster_follow(self) -> None:
        """Add a problem where the cluster cannot follow a scheduler of the user's own."""
        if "scheduler" in self.misplaced:
            self.misplaced.append("cluster")
        if "cluster" in self._choices or "cluster" in self.misplaced:
            return
        for scheduler in self._choices.get("scheduler", []):
            if self._groups.problem("cluster", scheduler):
                known = ", ".join(self._groups.options("cluster"))
                message = f"scheduler={scheduler} needs cluster=... beside it; the options are {known}"
                self.problems.append(Problem("cluster", None, message))
                self.misplaced.append("cluster")
                self.ready.append("cluster=continuous")


def quoted(text: str) -> str:
    """Return ``text`` as a quoted string of Hydra's grammar, which takes it as it stands."""
    escaped = re.sub(r"(\\*)'", lambda match: match[1] * 2 + r"\'", text)
    trailing = len(escaped) - len(escaped.rstrip("\\"))
    return f"'{escaped}{trailing * chr(92)}'"


def place(text: str) -> str:
    """Return what an override sets: its key, or the place that it chooses an option for."""
    return text.lstrip("+~").partition("=")[0].rpartition("@")[2]


@lru_cache(maxsize=4096)
def parsed(text: str) -> Override | None:
    """Return an override as Hydra reads it, or None where it cannot."""
    try:
        return OverridesParser.create().parse_override(text)
    except HydraException:
        return None


def is_sweep(override: Override | None) -> bool:
    """Tell whether an override gives several values."""
    return override is not None and override.is_sweep_override()


def sweep_size(override: Override) -> float:
    """Return how many values a sweep gives, without making them; 0 where only Hydra knows them (``glob``)."""
    sweep = override.value()
    if isinstance(sweep, ChoiceSweep):
        return len(sweep.list)
    if not isinstance(sweep, RangeSweep):
        return 0
    if not sweep.step:
        return inf
    start, stop = Fraction(sweep.start or 0), Fraction(sweep.stop or 0)
    return max(0.0, ceil((stop - start) / Fraction(sweep.step)))


def is_free_text(key: str) -> bool:
    """Tell whether a key's values are text, whatever Hydra would read in them."""
    return _FREE_TEXT.fullmatch(key) is not None


def one_value(text: str) -> str:
    """Return an override whose value is one, with a comma in it, too, where several values are a sweep."""
    key, _, value = text.partition("=")
    is_text = is_free_text(key) and is_sweep(parsed(f"++{text}"))
    return f"{key}={quoted(value)}" if is_text else text


def sweep_values(override: Override) -> list[str]:
    """Return the values of a sweep; none where only Hydra knows them (``glob``).

    They are as Hydra reads them again, or as they were meant where a key's values are free text.
    """
    sweep = override.value()
    if isinstance(sweep, ChoiceSweep) and is_free_text(override.key_or_group):
        return [each.text if isinstance(each, QuotedString) else str(each) for each in sweep.list]
    known = (ValueType.CHOICE_SWEEP, ValueType.SIMPLE_CHOICE_SWEEP, ValueType.RANGE_SWEEP)
    return list(override.sweep_string_iterator()) if override.value_type in known else []


def _names(override: Override, value: str) -> list[str]:
    """Return the options that an override chooses; none where Hydra or the configuration decides."""
    if override.is_sweep_override():
        return sweep_values(override)
    name = override.value()
    names = [name if isinstance(name, str) else value]
    return [name for name in names if "${" not in name]


def _first_value(text: str) -> str | None:
    """Return an override with the first value of its sweep; None where only Hydra knows its values."""
    override = parsed(text)
    if override is None or not override.is_sweep_override():
        return text
    values = sweep_values(override)
    if not values:
        return None
    first = quoted(values[0]) if is_free_text(override.key_or_group) else values[0]
    return f"{override.get_key_element()}={first}"
