"""Composing the configuration: Hydra merges the YAML files and the overrides into one mapping."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from servesim.check import Problem
from servesim.config.completion import completed
from servesim.config.groups import conf_dir
from servesim.config.layers import Completed
from servesim.config.overrides import place
from servesim.config.own_files import file_problems
from servesim.config.search_path import own_folder_first

VERSION_BASE = "1.3"

#: What Hydra and its readers raise when they cannot make sense of the input.
HYDRA_ERRORS = (HydraException, OmegaConfBaseException, YAMLError, UnicodeDecodeError, RecursionError)

#: Of these, those that a file is to blame for, whatever the overrides are.
_FILE_ERRORS = (YAMLError, UnicodeDecodeError, RecursionError)

_NOT_CHOSEN = re.compile(r"Could not override '([^']+)'")


class Composition(NamedTuple):
    """Plain ``values`` that Hydra composed, the ``folders`` that it looked into, and the ``choices`` it made.

    ``fixed`` tells that some value was taken from another key, so that a change of one key may be a change
    of several. ``typed`` are the keys and places that overrides set.
    """

    values: dict[str, Any]
    folders: tuple[Path, ...]
    choices: Mapping[str, str | None]
    fixed: bool
    typed: frozenset[str] = frozenset()

    def complete(self, values: Mapping[str, Any], typed: Iterable[str] = ()) -> Completed:
        """Return ``values`` made whole (:func:`completed`), some more keys having been ``typed``."""
        chosen = {key.rpartition("@")[2] for key, name in self.choices.items() if name and "gpu@" in key}
        return completed(values, self.typed.union(typed), chosen, self.folders)


def compose(overrides: list[str], config_dir: Path | None = None) -> tuple[Composition | None, list[Problem]]:
    """Return what Hydra composes, and the problems of overrides that had to be left out.

    Overrides that Hydra cannot take (such as the arrivals of a trace) are left out one by one; where it
    cannot be seen which they are, there is no composition.
    """
    found: list[Problem] = []
    left = list(overrides)
    with own_folder_first(config_dir), _hydra():
        while True:
            try:
                config = hydra.compose("config", overrides=left, return_hydra_config=True)
                return _composition(config, config.hydra), found
            except (*HYDRA_ERRORS, ValueError) as error:
                told, culprits = _explain(error, left, config_dir)
                found += told
                if not culprits:
                    return None, found
                left = [text for text in left if text not in culprits]


def as_completed(config: DictConfig, setting: Any) -> Completed:
    """Return a composed configuration as plain values, made whole.

    ``setting`` is Hydra's ``hydra``, which knows the folders that it looked into, and what was typed.
    """
    composition = _composition(config, setting)
    return composition.complete(composition.values)


def said(error: Exception) -> Problem:
    """Return what Hydra's error says, with the key that it is about where it knows one."""
    return Problem(getattr(error, "full_key", None) or "", None, _one_line(error))


def _composition(config: DictConfig, setting: Any) -> Composition:
    runtime = setting.runtime
    values: dict[str, Any] = OmegaConf.to_container(config)  # type: ignore[assignment]
    values.pop("hydra", None)
    fixed = "${" in repr(values)
    if fixed:
        shown = OmegaConf.masked_copy(config, list(values))
        values = OmegaConf.to_container(shown, resolve=True)  # type: ignore[assignment]
    folders = tuple(Path(source.path) for source in runtime.config_sources if source.schema == "file")
    choices: dict[str, str | None] = OmegaConf.to_container(runtime.choices)  # type: ignore[assignment]
    task: Any = OmegaConf.to_container(setting.overrides.task, resolve=False)
    return Composition(values, folders, choices, fixed, frozenset(place(str(text)) for text in task))


@contextmanager
def _hydra() -> Iterator[None]:
    """Have Hydra read ``conf/``, whatever it may be reading for a program around us."""
    around = GlobalHydra.instance().hydra
    GlobalHydra.instance().clear()
    try:
        with hydra.initialize_config_dir(str(conf_dir()), job_name="servesim", version_base=VERSION_BASE):
            yield
    finally:
        GlobalHydra.instance().hydra = around


def _explain(
    error: Exception, overrides: list[str], config_dir: Path | None
) -> tuple[list[Problem], list[str]]:
    """Return what Hydra's error means to the user, and the overrides to blame for it."""
    if isinstance(error, _FILE_ERRORS):
        return _file_problems(error, config_dir), []
    match = _NOT_CHOSEN.search(str(error))
    culprits = [text for text in overrides if match and text.lstrip("+~").partition("=")[0] == match[1]]
    if match and culprits:
        chosen, value = match[1].rpartition("@")[2], culprits[-1].partition("=")[2]
        return [Problem(chosen, value, "is not part of the configuration chosen here")], culprits
    key = str(getattr(error, "full_key", None) or "")
    culprits = [text for text in overrides if key and place(text) == key]
    if key or (culprits := _refused_alone(overrides)):
        typed = culprits[-1].partition("=")[2] if culprits else ""
        return [Problem(key or place(culprits[-1]), typed or None, _one_line(error))], culprits
    return [Problem("", None, _one_line(error))], []


def _refused_alone(overrides: list[str]) -> list[str]:
    """Return the first of the additions and deletions that Hydra does not take beside the choices alone."""
    special = [text for text in overrides if text.startswith(("+", "~")) and not text.startswith("++")]
    choices = [text for text in overrides if not text.startswith(("+", "~"))]
    for text in special:
        try:
            hydra.compose("config", overrides=[*choices, text])
        except (*HYDRA_ERRORS, ValueError):
            return [text]
    return []


def _file_problems(error: Exception, config_dir: Path | None) -> list[Problem]:
    """Return which files of the user's own an error is about; where none can be seen to be, what it says."""
    found = list(file_problems(config_dir)) if config_dir else []
    circle = "the defaults of some files name each other in a circle"
    message = circle if isinstance(error, RecursionError) else _one_line(error)
    return found or [Problem("" if config_dir is None else str(config_dir), None, message)]


def _one_line(error: Exception) -> str:
    """Return what Hydra says, without the lines that OmegaConf adds about its nodes."""
    causes = [str(cause) for cause in (error, error.__cause__) if cause is not None]
    lines = (line for cause in causes for line in cause.splitlines())
    return " ".join(line.strip() for line in lines if not re.match(r"\s+(full_key|object_type)[:=]", line))
