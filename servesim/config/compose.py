"""Composing the configuration: Hydra merges the YAML files and the overrides into one mapping."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
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
from servesim.config.groups import conf_dir
from servesim.config.overrides import quoted
from servesim.config.profiles import with_profiles

VERSION_BASE = "1.3"

#: What Hydra and its readers raise when they cannot make sense of the input.
HYDRA_ERRORS = (HydraException, OmegaConfBaseException, YAMLError)

_NOT_CHOSEN = re.compile(r"Could not override '([^']+)'")


class Composition(NamedTuple):
    """Plain ``values`` that Hydra composed, the ``folders`` that it looked into, and the ``choices`` it made.

    ``fixed`` tells that some value was taken from another key, so that a change of one key may be a change
    of several.
    """

    values: dict[str, Any]
    folders: tuple[Path, ...]
    choices: Mapping[str, str | None]
    fixed: bool

    def complete(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return ``values`` with the pools' GPUs complete and the profiles found.

        What a pool says of its GPU is laid over the scenario's ``gpu``, so that ``gpu.usd_per_hour=3`` holds
        for both pools, and ``cluster.prefill.gpu.usd_per_hour=3`` for one.
        """
        cluster, gpu = values.get("cluster"), values.get("gpu")
        if isinstance(cluster, dict) and isinstance(gpu, dict):
            values = {**values, "cluster": {key: _over(gpu, pool) for key, pool in cluster.items()}}
        return with_profiles(values, self.folders)


def compose(overrides: list[str], config_dir: Path | None = None) -> tuple[Composition | None, list[Problem]]:
    """Return what Hydra composes, and the problems of overrides that had to be left out.

    Overrides of what is not part of the chosen configuration (such as the arrivals of a trace) are left
    out one by one; where Hydra cannot take something else, there is no composition.
    """
    found: list[Problem] = []
    left = list(overrides)
    with _hydra():
        while True:
            try:
                texts = [*_search_path(config_dir), *left]
                config = hydra.compose("config", overrides=texts, return_hydra_config=True)
                return _composition(config, config.hydra.runtime), found
            except (*HYDRA_ERRORS, ValueError) as error:
                problem, culprits = _explain(error, left)
                found.append(problem)
                if not culprits:
                    return None, found
                left = [text for text in left if text not in culprits]


def as_mapping(config: DictConfig, runtime: Any) -> dict[str, Any]:
    """Return a composed configuration as plain values, with pools' GPUs complete and profiles found.

    ``runtime`` is Hydra's ``hydra.runtime``, which knows the folders that it looked into.
    """
    composition = _composition(config, runtime)
    return composition.complete(composition.values)


def _composition(config: DictConfig, runtime: Any) -> Composition:
    shown = OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
    values: dict[str, Any] = OmegaConf.to_container(shown)  # type: ignore[assignment]
    fixed = "${" in repr(values)
    if fixed:
        values = OmegaConf.to_container(shown, resolve=True)  # type: ignore[assignment]
    folders = tuple(Path(source.path) for source in runtime.config_sources if source.schema == "file")
    choices: dict[str, str | None] = OmegaConf.to_container(runtime.choices)  # type: ignore[assignment]
    return Composition(values, folders, choices, fixed)


def _over(gpu: Mapping[str, Any], pool: Any) -> Any:
    """Return a pool with all figures of its GPU, where it says any; anything else as it is."""
    if isinstance(pool, dict) and isinstance(pool.get("gpu"), dict):
        return {**pool, "gpu": {**gpu, **pool["gpu"]}}
    return pool


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


def _search_path(config_dir: Path | None) -> list[str]:
    """Return the override that makes Hydra look into a folder of the user's own, too."""
    return [f"hydra.searchpath=[{quoted(f'file://{config_dir.resolve()}')}]"] if config_dir else []


def _explain(error: Exception, overrides: list[str]) -> tuple[Problem, list[str]]:
    """Return what Hydra's error means to the user, and the overrides to blame for it."""
    match = _NOT_CHOSEN.search(str(error))
    culprits = [text for text in overrides if match and text.lstrip("+~").partition("=")[0] == match[1]]
    if match and culprits:
        place, value = match[1].rpartition("@")[2], culprits[-1].partition("=")[2]
        return Problem(place, value, "is not part of the configuration chosen here"), culprits
    causes = [str(cause) for cause in (error, error.__cause__) if cause is not None]
    return Problem("", None, " ".join(" ".join(causes).split())), []
