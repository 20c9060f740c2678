"""Tolerances: how far a simulated figure may be from the measured one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from servesim.check import ConfigError, Problem
from servesim.config.names import nearest
from servesim.validate.closed_loop import Simulated
from servesim.validate.compare import FIGURES, PER_REQUEST, Comparison, comparable, figures
from servesim.validate.measured import METRICS, Figure, Measured
from servesim.validate.points import Points
from servesim.words import listed

#: What errors of many points, or of single requests, amount to.
SCORES = ("mape", "mdape", "bias")
_NUMBER = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(%?)")

#: Names that a tolerance for runs can have, and those of one for closed-loop points.
OF_RUNS = (
    *(".".join(figure) for figure in FIGURES),
    *(f"{metric}.mdape" for metric in PER_REQUEST),
    *(f"{metric}.ks" for metric in METRICS),
)
OF_POINTS = tuple(
    f"{metric if statistic == 'mean' else f'{metric}.{statistic}'}.{score}"
    for metric, statistic in FIGURES
    for score in SCORES
)


class Tolerance(NamedTuple):
    """The largest absolute value that a measure may have, as a share of 1."""

    name: str
    limit: float


class Verdict(NamedTuple):
    """A tolerance, what the measure came out at in one run, and whether that is within it."""

    source: str
    name: str
    limit: float
    value: float

    @property
    def met(self) -> bool:
        """Tell whether the measure is within its tolerance; what is not known is not."""
        return abs(self.value) <= self.limit


def parsed(text: str, names: Iterable[str]) -> list[Tolerance]:
    """Return the tolerances of a text such as ``"ttft.mean=15% tpot.p50=10% ttft.ks=0.1"``.

    Args:
        text: words NAME=LIMIT; a limit is in per cent, or of a distance (``ks``) a number from 0 to 1.
        names: those that there are.

    Raises:
        ConfigError: listing the words that are wrong.
    """
    known = list(names)
    found: dict[str, Tolerance] = {}
    problems = []
    for word in text.split():
        name, _, limit = word.partition("=")
        message = _wrong(name, limit, known) or ("is given twice" if name in found else None)
        if message:
            problems.append(Problem("--tolerance", word, message))
        else:
            found[name] = Tolerance(name, float(limit.rstrip("%")) / (100 if limit.endswith("%") else 1))
    if not found and not problems:
        problems.append(
            Problem("--tolerance", text, "names nothing; write NAME=LIMIT, such as ttft.mean=15%")
        )
    if problems:
        raise ConfigError(problems)
    return list(found.values())


def _wrong(name: str, limit: str, known: list[str]) -> str | None:
    if name not in known:
        close = nearest(name, known)
        hint = f"did you mean {close}?" if close else f"they are {listed(known, 'and')}"
        return f"there is no such figure; {hint}"
    number = _NUMBER.fullmatch(limit)
    if number is None or not (number[2] or (name.endswith(".ks") and float(number[1]) <= 1)):
        if name.endswith(".ks"):
            return "the limit of a distance must be a number up to 1, or in per cent"
        hint = f": {name}={limit}%" if number else f", such as {name}=15%"
        return f"the limit must be in per cent{hint}"
    return None


def check_runs(tolerances: Iterable[Tolerance], runs: Sequence[Measured]) -> None:
    """Raise where a run lacks what a tolerance asks for, before anything is simulated.

    Raises:
        ConfigError: listing them.
    """
    asked = list(tolerances)
    found = [
        Problem("--tolerance", each.name, f"{run.source} has no measurement of it")
        for run in runs
        for each in asked
        if each.name not in _measured(run)
    ]
    found += [
        Problem("--tolerance", each.name, f"{run.source} has no requests, so only means can be compared")
        for run in runs
        for each in asked
        if each.name in _measured(run) and not comparable(run, _figure(each.name))
    ]
    if found:
        raise ConfigError(found)


def check_points(tolerances: Iterable[Tolerance], points: Points) -> None:
    """Raise where a table of points lacks what a tolerance asks for.

    Raises:
        ConfigError: listing them.
    """
    there = {_name(*figure) for figure in points.figures}
    found = [
        Problem("--tolerance", each.name, f"{points.source} has no column of it")
        for each in tolerances
        if each.name.rpartition(".")[0] not in there
    ]
    if found:
        raise ConfigError(found)


def judged(tolerances: Iterable[Tolerance], source: str, measures: Mapping[str, float]) -> list[Verdict]:
    """Return the verdict on each tolerance."""
    return [
        Verdict(source, each.name, each.limit, measures.get(each.name, float("nan"))) for each in tolerances
    ]


def measures_of_run(comparison: Comparison) -> dict[str, float]:
    """Return what tolerances of runs are about, by their names."""
    return {
        **{".".join(figure): comparison.error(*figure) for figure in comparison.figures},
        **{f"{metric}.mdape": spread.mdape for metric, spread in comparison.per_request.items()},
        **{f"{metric}.ks": distance.ks for metric, distance in comparison.ks.items()},
    }


def measures_of_points(simulated: Simulated) -> dict[str, float]:
    """Return what tolerances of points are about, by their names: of latencies the scores of the means."""
    return {
        f"{_name(str(metric), str(statistic))}.{score}": getattr(scores, score)
        for (metric, statistic), scores in simulated.scores().items()
        for score in SCORES
    }


def _name(metric: str, statistic: str) -> str:
    """Return a figure's name in a tolerance: ``ttft`` for its mean, ``ttft.p50``, ``throughput.requests``."""
    return metric if statistic == "mean" else f"{metric}.{statistic}"


def _figure(name: str) -> Figure:
    metric, _, statistic = name.partition(".")
    return metric, statistic


def _measured(run: Measured) -> set[str]:
    """Return the names of what can be told of a run."""
    single = {f"{metric}.{what}" for metric in METRICS for what in ("ks", "mdape") if len(run.sample(metric))}
    return {".".join(figure) for figure in figures(run)} | single
