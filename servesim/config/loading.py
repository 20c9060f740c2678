"""From overrides, or a mapping that Hydra has composed, to a checked scenario."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from servesim.check import ConfigError, Problem, field_problems, problems
from servesim.config.build import build
from servesim.config.compose import compose
from servesim.config.groups import Groups
from servesim.config.kinds import KINDS, LATER
from servesim.config.overrides import Overrides
from servesim.scenario import Scenario


def load(*overrides: str, config_dir: str | Path | None = None) -> Scenario:
    """Compose ``conf/`` with override strings and return the scenario.

    Args:
        overrides: as on the command line: ``"scheduler=static"``, ``"workload.arrivals.rate_rps=12"``.
        config_dir: a folder with options of your own, laid out as ``conf/``.

    Raises:
        ConfigError: listing everything that is wrong.
    """
    folder = None if config_dir is None else Path(config_dir)
    return from_overrides(Overrides(overrides, Groups.of(folder)), folder)


def from_overrides(overrides: Overrides, config_dir: Path | None = None) -> Scenario:
    """Return the scenario that overrides describe (the first one of a sweep).

    Raises:
        ConfigError: listing everything that is wrong, with what was wrong with the overrides themselves.
    """
    values, found = compose(overrides.first_values(), config_dir)
    found = [*overrides.problems, *found]
    if values is None:
        raise ConfigError(found)
    scenario, more = _build(values, bool(overrides.misplaced))
    found += [problem for problem in more if not _is_below(problem.path, overrides.misplaced)]
    if scenario is None or found:
        raise ConfigError(found)
    return scenario


def from_values(values: Mapping[str, Any]) -> Scenario:
    """Return the scenario that a composed mapping describes.

    Raises:
        ConfigError: listing everything that is wrong.
    """
    scenario, found = _build(values, False)
    if scenario is None or found:
        raise ConfigError(found)
    return scenario


def _build(values: Mapping[str, Any], patched: bool) -> tuple[Scenario | None, list[Problem]]:
    """Build and check; what concerns the scenario as a whole is left out where a part is not the user's."""
    scenario, found = build(Scenario, values, KINDS, LATER)
    if scenario is not None:
        found += field_problems(Scenario, vars(scenario)) if patched else problems(scenario)
    return scenario, found


def _is_below(path: str, places: list[str]) -> bool:
    return any(path == place or path.startswith(f"{place}.") for place in places)
