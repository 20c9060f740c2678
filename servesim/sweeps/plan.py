"""From a study to points: every scenario is made, and every mistake told, before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from servesim.check import ConfigError, Problem, field_problems
from servesim.config.expansion import Expansion
from servesim.config.groups import Groups
from servesim.config.overrides import place
from servesim.field_types import field_types, options
from servesim.scenario import Scenario
from servesim.sweeps.grid import Configuration, Grid
from servesim.sweeps.point import Hashes, Outcome, Point
from servesim.sweeps.search import LoadSearch
from servesim.sweeps.study import LOADS, Study
from servesim.words import listed
from servesim.workload.trace import Trace

#: Configurations that are refused before the others are no longer looked at.
_MOST_REFUSED = 100


class Plan:
    """Makes the points of a study."""

    def __init__(self, study: Study, grid: Grid, groups: Groups, config_dir: Path | None) -> None:
        self.study, self.grid = study, grid
        self._expansion, self._hashes = Expansion(groups, config_dir), Hashes()
        self.files: set[str] = set()  # traces, and what configurations were read from

    @property
    def most_points(self) -> int:
        """How many points there will be; with a load axis, at most."""
        loads = self.study.load.points if self.study.load else 1
        return len(self.grid.configurations) * loads * len(self.study.each_seed)

    def points(self, wanted: Sequence[tuple[int, float | None]]) -> list[Point]:
        """Return the points of some configurations, by number, each at a load and with every seed.

        A load of None leaves the one that the configuration has.

        Raises:
            ConfigError: listing everything that the scenarios refuse, each once. What only does not go
                together, such as a model and the memory of a GPU, is the outcome of its points.
        """
        found: list[Point] = []
        refused: dict[str, tuple[Problem, list[Configuration]]] = {}
        wrong_ones = 0
        for number, load in wanted:
            if wrong_ones == _MOST_REFUSED:
                break
            configuration = self.grid.configurations[number]
            for seed in self.study.each_seed:
                overrides = self._overrides(configuration, load, seed)
                built = self._expansion.scenario(overrides)
                for problem in built.refused:
                    refused.setdefault(str(problem), (problem, []))[1].append(configuration)
                if built.scenario is None or built.refused:
                    wrong_ones += 1
                    break  # with every other seed, the same is wrong
                self.files.update(built.files)
                found.append(self._point(number, load, seed, overrides, built.scenario, built.unfit))
        if refused:
            all_wrong = wrong_ones in (_MOST_REFUSED, len(self.grid.configurations))
            raise ConfigError(
                self._placed(problem, where, wrong_ones if all_wrong else 0)
                for problem, where in refused.values()
            )
        return found

    def searches(self, points: Sequence[Point], load_key: str, most: int) -> dict[int, LoadSearch]:
        """Return a search for the loads of each configuration, beginning at the load that it has.

        Raises:
            ConfigError: a configuration has no such load.
        """
        begins: dict[int, LoadSearch] = {}
        problems: dict[str, Problem] = {}
        for point in points:
            start = _number(point.scenario, load_key)
            if start is None:
                problem = Problem("load.key", load_key, _no_load(point.scenario))
                problems[str(problem)] = problem
            elif point.configuration not in begins:
                begins[point.configuration] = LoadSearch(start, most, _is_whole(point.scenario, load_key))
        if problems:
            raise ConfigError(problems.values())
        return begins

    def takes(self, point: Point, load: float) -> bool:
        """Tell whether a load is within the bounds of its key in the scenario of a point."""
        key = self.study.load.key if self.study.load else ""
        owner, _ = _looked_up(point.scenario, key)
        return not any(field_problems(type(owner), {key.rpartition(".")[2]: load}))

    def _overrides(self, configuration: Configuration, load: float | None, seed: int) -> tuple[str, ...]:
        texts = {place(text): text for text in configuration.overrides}
        if load is not None and self.study.load is not None:
            texts[self.study.load.key] = f"{self.study.load.key}={load}"
        return (*texts.values(), f"seed={seed}")

    def _point(
        self,
        number: int,
        load: float | None,
        seed: int,
        overrides: tuple[str, ...],
        scenario: Scenario,
        unfit: Sequence[Problem],
    ) -> Point:
        if isinstance(scenario.workload, Trace):
            files = (scenario.workload.path, scenario.workload.tokenizer)
            self.files.update(file for file in files if file is not None)
        outcome = Outcome.failed("\n".join(map(str, unfit))) if unfit else None
        return Point(number, load, seed, overrides, scenario, self._hashes.of(scenario), outcome)

    def _placed(self, problem: Problem, where: Sequence[Configuration], everywhere: int) -> Problem:
        """Return a problem with a configuration that has it, unless as many have it as are ``everywhere``."""
        labels = list(dict.fromkeys(each.label(self.grid.keys) for each in where))
        if len(labels) == everywhere:
            return problem
        more = f" and {len(labels) - 1} more" if len(labels) > 1 else ""
        return Problem(problem.path, problem.value, f"{problem.message} (in {labels[0]}{more})")


def _number(scenario: Scenario, key: str) -> float | None:
    """Return the number above 0 that a key has in a scenario; None where there is no such."""
    _, value = _looked_up(scenario, key)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and value > 0 else None


def _is_whole(scenario: Scenario, key: str) -> bool:
    """Tell whether a key takes whole numbers only."""
    owner, _ = _looked_up(scenario, key)
    component: type = type(owner)
    return float not in options(field_types(component)[key.rpartition(".")[2]])


def _looked_up(scenario: Scenario, key: str) -> tuple[Any, Any]:
    """Return the component that has a key, and its value there."""
    owner: Any = scenario
    *path, last = key.split(".")
    for name in path:
        owner = getattr(owner, name, None)
    return owner, getattr(owner, last, None)


def _no_load(scenario: Scenario) -> str:
    have = [key for key in LOADS if _number(scenario, key) is not None]
    hint = f"; {listed(have)} is" if have else ""
    return f"is no number above 0 in every configuration{hint}"
