"""Terms of an engine, fitted to part of the measured runs and judged by the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from servesim.check import ConfigError, Problem
from servesim.cost.overhead import EngineOverhead
from servesim.scenario import Scenario
from servesim.sweeps.work import Progress
from servesim.validate.closed_loop import Bases, Scores, scored, simulate
from servesim.validate.compare import figures as figures_of
from servesim.validate.fit import TERMS, Fit, Floats, fit
from servesim.validate.held_out import held_out_lines, held_out_runs
from servesim.validate.measured import Figure, Measured
from servesim.validate.points import Points
from servesim.validate.readers.content import Content
from servesim.validate.replay import simulated

#: Simulates all runs on scenarios with other terms, and returns a figure of each.
Simulate = Callable[[EngineOverhead], Floats]


@dataclass(frozen=True, eq=False)
class Runs:
    """Measured runs of which one figure each is to be met: the first of ``figures`` that it has.

    Attributes:
        figures: the metrics and statistics that are compared, the preferred one first.
        measured: the values, NaN where a run has none of them.
        held_out: runs that are judged and not fitted.
        overhead: the terms to start from.
        simulate: the same runs under other terms.
        sequences: the fewest and the most requests that the fitted runs had at once; None: not known.

    """

    figures: Sequence[Figure]
    measured: Floats
    held_out: np.ndarray
    overhead: EngineOverhead
    simulate: Simulate
    sequences: tuple[int, int] | None


@dataclass(frozen=True, eq=False)
class FittedTerms:
    """The terms that the fitted runs want, and the errors with them.

    ``fitted`` and ``held_out`` are the scores with the fitted terms, ``held_out_before`` with those at the
    start, ``held_out_kernels_alone`` with none at all; a score of no runs has n = 0.
    """

    runs: Runs
    fit: Fit
    overhead: EngineOverhead
    fitted: Scores
    held_out: Scores
    held_out_before: Scores
    held_out_kernels_alone: Scores


def fit_terms(runs: Runs, name: str) -> FittedTerms:
    """Fit the three terms of an engine to the runs that are not held out, and judge them by the others.

    Raises:
        ConfigError: too few runs are left to fit.
    """
    start = {term: float(getattr(runs.overhead, term)) for term in TERMS}
    before = runs.simulate(runs.overhead)
    usable = ~np.isnan(before) & (runs.measured > 0)
    chosen = usable & ~runs.held_out
    if chosen.sum() <= len(TERMS):
        left = f"{int(chosen.sum())} runs are left to fit {len(TERMS)} terms to"
        raise ConfigError([Problem("--fit", None, f"{left}; it takes {len(TERMS) + 1} at least")])

    def predict(terms: Mapping[str, float]) -> Floats:
        values: Floats = runs.simulate(with_terms(runs.overhead, terms))[chosen]
        return values

    found = fit(predict, runs.measured[chosen], start)
    overhead = _written(runs, found, name)
    alone = with_terms(runs.overhead, {term: about.least for term, about in TERMS.items()})
    judged = usable & runs.held_out
    after = runs.simulate(overhead)

    def scores(values: Floats, which: np.ndarray) -> Scores:
        return scored(values[which] / runs.measured[which] - 1)

    kernels = runs.simulate(alone) if judged.any() else before
    return FittedTerms(
        runs,
        found,
        overhead,
        scores(after, chosen),
        scores(after, judged),
        scores(before, judged),
        scores(kernels, judged),
    )


def of_points(
    points: Points,
    bases: Bases,
    figures: Sequence[Figure],
    held_out: Mapping[str, str],
    content: Content | None = None,
    **how: Any,
) -> Runs:
    """Return closed-loop points as runs to fit; ``how`` is handed on to :func:`simulate`.

    Args:
        points: what was measured.
        bases: the scenario of each tensor parallelism.
        figures: the metrics and statistics that are compared, the preferred one first.
        held_out: what the points have that are judged and not fitted; see :func:`held_out_lines`.
        content: the table, by whose columns points can be held out, too.
        how: further arguments of :func:`simulate`.

    Raises:
        ConfigError: a condition names nothing that points have, or there is nothing to start from.
    """
    kept = [point for point in points.points if isinstance(bases[point.tp], Scenario)]
    out = held_out_lines(points, held_out, content)
    mask = np.array([point.line in out for point in kept])
    wanted = [_first(figures, point.measured) for point in kept]
    users = [point.concurrency for point, judged in zip(kept, mask, strict=True) if not judged]

    def run(overhead: EngineOverhead) -> Floats:
        varied = {
            tp: replace(each, engine_overhead=overhead) if isinstance(each, Scenario) else each
            for tp, each in bases.items()
        }
        table = simulate(points._replace(points=kept), varied, **how).table
        rows = zip(table.line, table.metric, table.statistic, strict=True)
        found = dict(zip(rows, table.simulated, strict=True))
        pairs = zip(kept, wanted, strict=True)
        return np.array([found.get((point.line, *(figure or ())), np.nan) for point, figure in pairs])

    return Runs(
        figures,
        np.array(
            [point.measured[figure] if figure else np.nan for point, figure in zip(kept, wanted, strict=True)]
        ),
        mask,
        _start(each for each in bases.values() if isinstance(each, Scenario)),
        run,
        (min(users), max(users)) if users else None,
    )


def of_runs(
    measured: Sequence[Measured],
    scenario: Scenario,
    figures: Sequence[Figure],
    held_out: Mapping[str, str],
    jobs: int = 1,
    progress: Progress | None = None,
) -> Runs:
    """Return measured runs, whose requests are replayed, as runs to fit.

    A run is held out when its columns of ``--by`` have all these values.

    Raises:
        ConfigError: a name is none of these columns, or there are no terms to start from.
    """
    known = [figures_of(each) for each in measured]
    wanted = [_first(figures, each) for each in known]

    def run(overhead: EngineOverhead) -> Floats:
        found = simulated(replace(scenario, engine_overhead=overhead), measured, jobs, progress)
        pairs = zip((figures_of(each.run) for each in found), wanted, strict=True)
        return np.array([each.get(figure, np.nan) if figure else np.nan for each, figure in pairs])

    return Runs(
        figures,
        np.array([each[figure] if figure else np.nan for each, figure in zip(known, wanted, strict=True)]),
        np.array(held_out_runs(measured, held_out)),
        _start([scenario]),
        run,
        None,
    )


def _first(figures: Sequence[Figure], known: Mapping[Figure, float]) -> Figure | None:
    """Return the first of some figures that is known and above 0."""
    return next((figure for figure in figures if known.get(figure, 0.0) > 0), None)


def _start(scenarios: Any) -> EngineOverhead:
    found: EngineOverhead | None = next(iter(scenarios)).engine_overhead
    if found is None:
        message = "must name an engine whose kernels the terms go with"
        raise ConfigError([Problem("engine_overhead", None, message)])
    return found


def _written(runs: Runs, found: Fit, name: str) -> EngineOverhead:
    """Return the terms to four digits, as their file will have them."""
    values = {term: float(f"{value:.4g}") for term, value in found.values.items()}
    ranges = {} if runs.sequences is None else {"sequences": list(runs.sequences)}
    return replace(with_terms(runs.overhead, values), name=name, ranges=ranges, provenance=None)


def with_terms(overhead: EngineOverhead, terms: Mapping[str, float]) -> EngineOverhead:
    """Return an engine with other terms, of the names of :data:`TERMS`."""
    return replace(
        overhead,
        step_s=terms["step_s"],
        sequence_s=terms["sequence_s"],
        prefill_factor=terms["prefill_factor"],
    )
