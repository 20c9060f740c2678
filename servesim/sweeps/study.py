"""A study: which configurations are run under which loads, with which seeds, and what is compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import yaml

from servesim.check import ConfigError, Problem, problems, quantity
from servesim.config.build import build
from servesim.config.compose import compose
from servesim.config.groups import Groups
from servesim.config.names import nearest
from servesim.config.overrides import Overrides
from servesim.words import listed

#: The group of studies, and the key below which Hydra composes one.
GROUP = "experiment"

#: Keys that say how much traffic there is, which a load axis may find values of.
LOADS = ("workload.arrivals.rate_rps", "workload.arrivals.concurrency", "workload.rate_scale")
#: Seeds are below this: they are kept as integers of 64 bits.
SEEDS_END = 2**63


@dataclass(frozen=True)
class Load:
    """A load axis that finds itself, from the value that the configuration has.

    For each configuration at most ``points`` values of ``key`` are tried, a number that must be there and
    above 0: rates, users, or the scale of a trace. A limit in ``seconds`` for the whole sweep makes the
    choice of values depend on the speed of the machine.
    """

    key: str = quantity(default="workload.arrivals.rate_rps")
    points: int = quantity("loads per configuration", at_least=3, at_most=1000, default=12)
    seconds: float | None = quantity("s of wall time", above=0, default=None)

    concerns: ClassVar[tuple[str, ...]] = ("key",)

    def problems(self) -> Iterator[Problem]:
        """Yield that the key is of no traffic."""
        if self.key not in LOADS:
            yield Problem("key", self.key, f"is no load; must be {listed(LOADS)}")


@dataclass(frozen=True)
class Study:
    """Variants x axes x loads x seeds.

    ``overrides`` hold for every point, those of a variant for its points, and each of the ``axes``
    ("key=value1,value2") is crossed with all others. ``seeds`` are so many from 0 on, or a list. ``compare``
    names the figures to show first, and ``baseline`` the variant that the others are compared with.
    """

    question: str = quantity(default="")
    overrides: tuple[str, ...] = quantity(default=())
    variants: Mapping[str, Any] = field(default_factory=dict)
    axes: tuple[str, ...] = quantity(default=())
    load: Load | None = quantity(default=None)
    seeds: int | tuple[int, ...] = quantity("seeds", at_least=1, at_most=10_000, default=1)
    compare: tuple[str, ...] = quantity(default=())
    baseline: str | None = quantity(default=None)

    concerns: ClassVar[tuple[str, ...]] = ("variants", "seeds", "baseline")

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with the variants, the seeds and the baseline."""
        for name, overrides in self.variants.items():
            if not (isinstance(name, str) and name and _is_texts(overrides)):
                yield Problem(f"variants.{name}", overrides, "must be a name with a list of overrides")
        yield from self._seed_problems()
        if self.baseline is not None and not self.variants:
            message = "needs variants: a baseline is the name of one; values of an axis are none"
            yield Problem("baseline", self.baseline, message)
        elif self.baseline is not None and self.baseline not in self.variants:
            close = nearest(self.baseline, map(str, self.variants))
            hint = f" (nearest: {close})" if close else ""
            yield Problem("baseline", self.baseline, f"must be {listed(self.variants)}{hint}")

    def _seed_problems(self) -> Iterator[Problem]:
        if isinstance(self.seeds, int):
            return
        if not self.seeds or min(self.seeds) < 0:
            yield Problem("seeds", self.seeds, "must be a number of seeds, or seeds of at least 0")
        elif max(self.seeds) >= SEEDS_END:
            yield Problem("seeds", self.seeds, "must each be below 2^63")
        elif len(set(self.seeds)) < len(self.seeds):
            yield Problem("seeds", self.seeds, "must be different: the same seed gives the same run")

    @property
    def each_seed(self) -> tuple[int, ...]:
        """The seeds, in order."""
        return tuple(range(self.seeds)) if isinstance(self.seeds, int) else tuple(sorted(self.seeds))

    def as_dict(self) -> dict[str, Any]:
        """Return the study as plain values, as its YAML file has them."""
        return yaml.safe_load(yaml.safe_dump(_plain(asdict(self))))  # type: ignore[no-any-return]

    @classmethod
    def read(cls, path: Path) -> Study:
        """Return the study that ``study.yaml`` beside a table describes.

        Raises:
            ConfigError: listing everything that is wrong with it.
        """
        try:
            said = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
            message = f"cannot be read: {' '.join(str(error).split())}"
            raise ConfigError([Problem(str(path), None, message)]) from error
        if not isinstance(said, Mapping) or not all(isinstance(key, str) for key in said):
            raise ConfigError([Problem(str(path), None, "describes no study")])
        try:
            return study_of({key: value for key, value in said.items() if key != "name"})
        except ConfigError as error:
            raise ConfigError(Problem(str(path), None, str(each)) for each in error.problems) from error


def study_of(values: Mapping[str, Any]) -> Study:
    """Return the study that plain values describe.

    Raises:
        ConfigError: listing everything that is wrong, with the nearest known name of each unknown key.
    """
    variants = values.get("variants") or {}
    named = isinstance(variants, Mapping)
    study, found = build(Study, {**values, "variants": variants if named else {}}, {}, {})
    if not named:
        found.append(Problem("variants", variants, "must be names, each with a list of overrides"))
    if study is not None:
        found += problems(study)
    if study is None or found:
        raise ConfigError(found)
    return study


def load_study(choice: Sequence[str], groups: Groups, config_dir: Path | None = None) -> Study:
    """Return the study that overrides choose and change: ``experiment=NAME``, ``experiment.seeds=5``.

    Raises:
        ConfigError: listing everything that is wrong.
    """
    overrides = Overrides(choice, groups)
    if overrides.problems:
        raise ConfigError(overrides.problems)
    composition, found = compose(overrides.ready, config_dir)
    if composition is None or found:
        raise ConfigError(found)
    said = composition.values.get(GROUP)
    if not isinstance(said, Mapping):
        raise ConfigError([Problem(GROUP, None, "this file describes no study; see servesim --help")])
    return study_of(said)


def _is_texts(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(text, str) for text in value)


def _plain(value: Any) -> Any:
    """Return tuples as lists, which is how YAML reads them back."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value
