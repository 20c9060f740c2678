"""Composing the configuration: Hydra merges the YAML files and the overrides into one mapping."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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


def compose(
    overrides: list[str], config_dir: Path | None = None
) -> tuple[dict[str, Any] | None, list[Problem]]:
    """Return the mapping that Hydra composes, and the problems of overrides that had to be left out.

    Overrides of what is not part of the chosen configuration (such as the arrivals of a trace) are left
    out one by one; where Hydra cannot take something else, there is no mapping.
    """
    found: list[Problem] = []
    left = list(overrides)
    with _hydra():
        while True:
            try:
                texts = [*_search_path(config_dir), *left]
                config = hydra.compose("config", overrides=texts, return_hydra_config=True)
                return as_mapping(config, config.hydra.runtime), found
            except (*HYDRA_ERRORS, ValueError) as error:
                problem, culprits = _explain(error, left)
                found.append(problem)
                if not culprits:
                    return None, found
                left = [text for text in left if text not in culprits]


def as_mapping(config: DictConfig, runtime: Any) -> dict[str, Any]:
    """Return a composed configuration as plain values, with pools' GPUs complete and profiles found.

    What a pool says of its GPU is laid over the scenario's ``gpu``, so that ``gpu.usd_per_hour=3`` holds
    for both pools, and ``cluster.prefill.gpu.usd_per_hour=3`` for one. ``runtime`` is Hydra's
    ``hydra.runtime``, which knows the folders that it looked into.
    """
    shown = OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
    values: dict[str, Any] = OmegaConf.to_container(shown, resolve=True)  # type: ignore[assignment]
    cluster, gpu = values.get("cluster"), values.get("gpu")
    for pool in cluster.values() if isinstance(cluster, dict) else ():
        if isinstance(pool, dict) and isinstance(pool.get("gpu"), dict) and isinstance(gpu, dict):
            pool["gpu"] = {**gpu, **pool["gpu"]}
    folders = [Path(source.path) for source in runtime.config_sources if source.schema == "file"]
    return with_profiles(values, folders)


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
