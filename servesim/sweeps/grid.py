"""The grid of a study: its configurations in order, each as a list of overrides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, product
from math import prod
from typing import Any, NamedTuple

from servesim.check import ConfigError, Problem
from servesim.config.axes import Axis, axis_size, is_axis, read_axis
from servesim.config.groups import Groups
from servesim.config.overrides import MOST_POINTS, place
from servesim.sweeps.study import SEEDS_END, Study

#: What a sweep judges unless an override says otherwise: the steady part of each run.
STEADY = "steady=true"
_UNTOLD = 10**9  # sizes beyond are not told exactly


class Configuration(NamedTuple):
    """What is run under several loads and seeds: a variant, the values of the axes, and all overrides."""

    variant: str
    values: tuple[Any, ...]
    overrides: tuple[str, ...]

    def label(self, keys: Sequence[str]) -> str:
        """Return what sets the configuration apart, ``keys`` being those of the axes."""
        pairs = (f"{key}={value}" for key, value in zip(keys, self.values, strict=True))
        return ", ".join(filter(None, (self.variant, *pairs)))


class Grid(NamedTuple):
    """The keys of the axes, and all configurations: variants first, then the axes, the last one fastest."""

    keys: tuple[str, ...]
    configurations: tuple[Configuration, ...]


def folded(study: Study, typed: Sequence[str], groups: Groups) -> Study:
    """Return a study with what is typed beside it, which wins: several values make an axis.

    Raises:
        ConfigError: listing what is wrong with seeds that are typed.
    """
    places = {place(text) for text in typed}
    rest = [text for text in typed if place(text) != "seed"]
    seeds = [text for text in typed if place(text) == "seed"]
    load = study.load
    return replace(
        study,
        overrides=(*_others(study.overrides, places), *(text for text in rest if not is_axis(text))),
        variants={name: _others(overrides, places) for name, overrides in study.variants.items()},
        axes=(*_others(study.axes, places), *filter(is_axis, rest)),
        load=None if load is None or load.key in places else load,
        seeds=_seeds(seeds[-1], groups) if seeds else study.seeds,
    )


def grid(study: Study, groups: Groups) -> Grid:
    """Return the configurations of a study.

    Raises:
        ConfigError: listing what is wrong with the axes, and which keys are set in two places.
    """
    _refuse_too_many(study)
    read = [read_axis(text, groups) for text in study.axes]
    axes = [axis for axis in read if isinstance(axis, Axis)]
    found = [
        *(problem.under("axes") for problem in read if isinstance(problem, Problem)),
        *_misplaced_axes(study),
        *_set_twice(study, axes),
    ]
    if found:
        raise ConfigError(found)
    return Grid(tuple(axis.key for axis in axes), tuple(_configurations(study, axes)))


def _configurations(study: Study, axes: Sequence[Axis]) -> Iterator[Configuration]:
    variants = study.variants or {"": ()}
    for (name, own), *steps in product(
        variants.items(), *(zip(axis.values, axis.overrides, strict=True) for axis in axes)
    ):
        values, texts = [value for value, _ in steps], [text for _, text in steps]
        yield Configuration(name, tuple(values), _merged([STEADY, *study.overrides, *own, *texts]))


def _merged(overrides: Iterable[str]) -> tuple[str, ...]:
    """Return overrides with those left out that a later one of the same place replaces."""
    last = {place(text): text for text in overrides}
    return tuple(last.values())


def _others(overrides: Iterable[str], places: set[str]) -> tuple[str, ...]:
    return tuple(text for text in overrides if place(text) not in places)


def _seeds(text: str, groups: Groups) -> tuple[int, ...]:
    if axis_size(text) > MOST_POINTS:
        raise ConfigError([Problem(text, None, f"a sweep has at most {MOST_POINTS:,} points")])
    axis = read_axis(text, groups)
    if isinstance(axis, Problem):
        raise ConfigError([axis])
    if not all(type(value) is int and 0 <= value < SEEDS_END for value in axis.values):
        value = text.partition("=")[2]
        message = "must be a whole number of at least 0 and below 2^63, or several"
        raise ConfigError([Problem("seed", value, message)])
    return axis.values


def _misplaced_axes(study: Study) -> Iterator[Problem]:
    """Yield the overrides that give several values where one is wanted."""
    places = {"overrides": study.overrides} | {
        f"variants.{name}": own for name, own in study.variants.items()
    }
    for where, overrides in places.items():
        for text in filter(is_axis, overrides):
            message = "gives several values: write it under axes"
            yield Problem(where, text, message)


def _refuse_too_many(study: Study) -> None:
    """Raise where a study is more than anybody waits for, before any value is made."""
    loads = study.load.points if study.load else 1
    sizes = [len(study.variants) or 1, *map(axis_size, study.axes), loads, len(study.each_seed)]
    if prod(sizes) > MOST_POINTS:
        parts = " x ".join(
            f"{size:,}" if size < _UNTOLD else f"over {_UNTOLD:,}" for size in sizes if size > 1
        )
        raise ConfigError([Problem("", None, f"{parts} points; a sweep has at most {MOST_POINTS:,}")])


def _set_twice(study: Study, axes: Sequence[Axis]) -> Iterator[Problem]:
    """Yield the places that two parts of a study set, each of which would undo the other."""
    texts = chain(study.overrides, study.axes, *study.variants.values())
    if any(place(text) == "seed" for text in texts):
        yield Problem("seeds", None, "are the only place for seeds: seeds: 3, or seeds: [1, 5]")
    swept = Counter(place(f"{axis.key}=") for axis in axes)
    for key, count in swept.items():
        if count > 1:
            yield Problem("axes", key, "is swept by two axes")
        if study.load and study.load.key == key:
            yield Problem("load.key", key, "is swept by an axis, too")
        for name, overrides in study.variants.items():
            if key in map(place, overrides):
                yield Problem(f"variants.{name}", key, "is swept by an axis, too")
