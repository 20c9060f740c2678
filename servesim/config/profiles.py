"""Finding the profiles that ``calibration=auto`` stands for, in the folders that Hydra looks into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from glob import escape
from pathlib import Path
from typing import Any

import yaml

from servesim.check import ConfigError, Problem

#: The reader written in C where PyYAML has it: ten times as fast.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def with_profiles(values: Mapping[str, Any], folders: Sequence[Path]) -> dict[str, Any]:
    """Return a composed mapping in which ``calibration=auto`` has the profiles that its pools need.

    That is ``calibration/<gpu>-<engine>.yaml`` for the GPU of each pool, in the first folder that has it;
    where a GPU has none, that of its ``profile_of``; and where that has none, every profile of the engine:
    one of them will be scaled to it.
    """
    calibration, overhead = values.get("calibration"), values.get("engine_overhead")
    if not (isinstance(calibration, Mapping) and calibration.get("kind") == "auto"):
        return dict(values)
    engine = overhead.get("engine") if isinstance(overhead, Mapping) else None
    if not isinstance(engine, str):
        return dict(values)
    known = {
        path.stem: path for folder in reversed(folders) for path in _of_engine(folder / "calibration", engine)
    }
    wanted = [[f"{name}-{engine}" for name in names] for names in _gpus(values)]
    found = [[name for name in names if name in known] for names in wanted]
    chosen = {names[0] for names in found} if all(found) else known.keys()
    profiles = {name: read_profile(known[name]) for name in sorted(chosen)}
    return {**values, "calibration": {"profiles": profiles, **calibration}}


def _gpus(values: Mapping[str, Any]) -> list[list[str]]:
    """Return two names of each GPU that some pool has: its own, and its ``profile_of``."""
    cluster = values.get("cluster")
    parts = cluster.values() if isinstance(cluster, Mapping) else ()
    pools = [pool for pool in parts if isinstance(pool, Mapping)]
    gpus = [pool.get("gpu") or values.get("gpu") for pool in pools] or [values.get("gpu")]
    keys = ("name", "profile_of")
    return [[str(gpu.get(key)) for key in keys] for gpu in gpus if isinstance(gpu, Mapping)]


def _of_engine(folder: Path, engine: str) -> list[Path]:
    """Return the profiles of an engine in a folder, listed once for as long as it does not change."""
    return _listed(folder, folder.stat().st_mtime_ns, engine) if folder.is_dir() else []


@lru_cache(maxsize=32)
def _listed(folder: Path, changed_ns: int, engine: str) -> list[Path]:
    return sorted(folder.glob(f"*-{escape(engine)}.yaml"))


def read_profile(path: Path) -> Any:
    """Return what a profile says; a file is read once for as long as it does not change.

    Whether that is a profile is for :func:`servesim.cost.profile.profile_problems` to say.

    Raises:
        ConfigError: the file is not YAML.
    """
    said = _parsed(path, path.stat().st_mtime_ns)
    return dict(said) if isinstance(said, dict) else said


@lru_cache(maxsize=32)
def _parsed(path: Path, changed_ns: int) -> Any:
    try:
        said = yaml.load(path.read_bytes(), Loader=_Loader)
    except yaml.YAMLError as error:
        raise ConfigError(
            [Problem(str(path), None, f"is not YAML: {' '.join(str(error).split())}")]
        ) from error
    return {key: value for key, value in said.items() if key != "kind"} if isinstance(said, dict) else said
