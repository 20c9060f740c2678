"""From overrides, or a mapping that Hydra has composed, to a checked scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from servesim.check import ConfigError, Problem, field_problems, joint_problems
from servesim.config.build import build
from servesim.config.compositions import composed
from servesim.config.groups import Groups
from servesim.config.kinds import KINDS, LATER
from servesim.config.layers import Completed
from servesim.config.overrides import Overrides
from servesim.scenario import Scenario


def load(*overrides: str, config_dir: str | Path | None = None) -> Scenario:
    """Compose ``conf/`` with override strings and return the scenario.

    Args:
        overrides: as on the command line: ``"scheduler=static"``, ``"workload.arrivals.rate_rps=12"``.
        config_dir: a folder with options of your own, laid out as ``conf/``.

    Raises:
        ConfigError: listing everything that is wrong.
        TypeError: an override is no string.
    """
    if odd := [override for override in overrides if not isinstance(override, str)]:
        raise TypeError(f'overrides are strings, each an argument of its own ("seed=1"), not {odd[0]!r}')
    folder = None if config_dir is None else Path(config_dir)
    return from_overrides(Overrides(overrides, Groups.of(folder)), folder)


def from_overrides(overrides: Overrides, config_dir: Path | None = None) -> Scenario:
    """Return the scenario that overrides describe (the first one of a sweep).

    Raises:
        ConfigError: listing everything that is wrong, with what was wrong with the overrides themselves.
    """
    composition, found = composed(overrides.first_values(), config_dir)
    found = [*overrides.problems, *found]
    if composition is None:
        raise ConfigError(found)
    built = build_completed(composition.complete(composition.values), overrides.misplaced)
    found += [*built.refused, *built.unfit]
    if built.scenario is None or found:
        raise ConfigError(found)
    return built.scenario


def from_completed(whole: Completed) -> Scenario:
    """Return the scenario that a completed composition describes.

    Raises:
        ConfigError: listing everything that is wrong.
    """
    return _right(build_completed(whole))


def from_values(values: Mapping[str, Any]) -> Scenario:
    """Return the scenario that a composed mapping describes.

    Raises:
        ConfigError: listing everything that is wrong.
    """
    return _right(build_scenario(values))


def _right(built: Built) -> Scenario:
    if built.scenario is None or built.refused or built.unfit:
        raise ConfigError([*built.refused, *built.unfit])
    return built.scenario


class Built(NamedTuple):
    """A scenario, where it could be built, and what is wrong with it.

    ``refused`` is wrong in itself (unknown keys, values out of bounds); ``unfit`` are parts that do not go
    together, such as a model and the memory of a GPU. ``files`` are those that values were read from.
    """

    scenario: Scenario | None
    refused: list[Problem]
    unfit: list[Problem]
    files: tuple[str, ...] = ()


def build_completed(
    whole: Completed, misplaced: Sequence[str] = (), ready: Mapping[str, Any] | None = None
) -> Built:
    """Build and check the scenario that a completed composition describes (see :func:`build_scenario`).

    Problems of values that nobody typed say where those are from, and nothing is said of a value that was
    worked out from others that are wrong. Where a file or a flag could not be read,
    nothing is said of parts that do not go together: they are not what was meant.
    """
    built = build_scenario(whole.values, misplaced, ready)
    refused = [*whole.problems, *whole.told(built.refused)]
    unfit = [] if whole.problems else [*map(whole.traced, built.unfit)]
    return Built(built.scenario, refused, unfit, whole.files)


def build_scenario(
    values: Mapping[str, Any], misplaced: Sequence[str] = (), ready: Mapping[str, Any] | None = None
) -> Built:
    """Build and check the scenario that a composed mapping describes.

    Args:
        values: the mapping.
        misplaced: places that do not hold what the user asked for: nothing is said of them, nor of the
            scenario as a whole.
        ready: components that have been built and found right before, by their places.

    """
    scenario, refused = build(Scenario, values, KINDS, LATER, ready)
    unfit: list[Problem] = []
    if scenario is not None:
        unseen = {name: part for name, part in vars(scenario).items() if name not in (ready or ())}
        own = list(field_problems(Scenario, unseen))
        refused += own
        unfit = [] if misplaced else joint_problems(scenario, own)
    return Built(scenario, [problem for problem in refused if not _is_below(problem.path, misplaced)], unfit)


def _is_below(path: str, places: Sequence[str]) -> bool:
    return any(path == place or path.startswith(f"{place}.") for place in places)
