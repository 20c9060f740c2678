"""Fitting what an engine adds to its kernels to measured runs, by simulating them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import least_squares

Floats = NDArray[np.float64]

#: Returns what the runs would show under other terms: a figure for each, in the order of the measured ones.
Predict = Callable[[Mapping[str, float]], Floats]

#: Relative errors beyond this count linearly: one odd run does not bend the fit.
ROBUST = 0.05
#: Two terms whose estimates correlate more than this move against each other, and the runs look the same.
INSEPARABLE = 0.95
#: The level of the intervals.
CONFIDENCE = 0.95
#: Simulations of all runs, each with its derivatives, that a search may take.
MOST_ROUNDS = 12


class Term(NamedTuple):
    """A term to fit: its least value, a change that a simulation feels, and what it is."""

    least: float
    change: float
    about: str


#: The terms of :class:`servesim.cost.overhead.EngineOverhead`, in its units.
TERMS = {
    "step_s": Term(0.0, 2e-4, "host time of a step"),
    "sequence_s": Term(0.0, 2e-6, "host time per sequence of a step"),
    "prefill_factor": Term(1.0, 0.02, "prefill tokens' time in units of their kernels'"),
}


class Estimate(NamedTuple):
    """A fitted term with its 95% interval; ``at_bound`` where the least value was the best."""

    value: float
    low: float
    high: float
    at_bound: bool


@dataclass(frozen=True)
class Fit:
    """Fitted terms, and what the runs cannot tell of them.

    ``together`` are pairs of terms that cannot be told apart, with the correlation of their estimates;
    ``unfelt`` are terms that change none of the runs. The intervals are those of the linearised problem,
    with Student's t for the number of runs beyond the number of terms.
    """

    terms: Mapping[str, Estimate]
    together: Sequence[tuple[str, str, float]]
    unfelt: Sequence[str]
    predicted: Floats

    @property
    def values(self) -> dict[str, float]:
        """The fitted values by name."""
        return {name: term.value for name, term in self.terms.items()}

    def doubts(self) -> list[str]:
        """Return a sentence for each thing that the runs do not tell."""
        said = [f"no run feels {name} ({TERMS[name].about}): it stays as it was" for name in self.unfelt]
        for name, term in self.terms.items():
            if name in self.unfelt:
                continue
            if term.at_bound:
                said.append(f"{name} is at its least value, {term.value:g}: the runs want less than that")
            elif term.low <= TERMS[name].least:
                said.append(f"{name} cannot be told from {TERMS[name].least:g}")
        for first, second, correlation in self.together:
            said.append(
                f"{first} and {second} cannot be told apart by these runs (correlation {correlation:.2f}): "
                "only their sum is known"
            )
        return said


def fit(predict: Predict, measured: Floats, start: Mapping[str, float]) -> Fit:
    """Return the terms that make the relative errors of the predicted figures least, robustly.

    The search is over :data:`TERMS` from their least values up, from ``start``. Derivatives are taken over
    changes that are large against the steps in which a simulation answers.

    Args:
        predict: simulates the runs under other terms.
        measured: what they showed, each above 0.
        start: terms to start from.

    Raises:
        ValueError: there are no more runs than terms.
    """
    names = list(TERMS)
    if len(measured) <= len(names):
        raise ValueError(f"{len(measured)} figures cannot fit {len(names)} terms")
    least = np.array([TERMS[name].least for name in names])
    change = np.array([TERMS[name].change for name in names])
    known: dict[bytes, Floats] = {}

    def errors(scaled: Floats) -> Floats:
        key = scaled.tobytes()
        if key not in known:
            values = least + change * scaled
            known[key] = predict(dict(zip(names, values.tolist(), strict=True))) / measured - 1
        return known[key]

    def slopes(scaled: Floats) -> Floats:
        here = errors(scaled)
        return np.array([errors(scaled + moved) - here for moved in np.eye(len(names))]).T

    first = np.maximum((np.array([start[name] for name in names]) - least) / change, 0.0)
    found = least_squares(
        errors,
        np.maximum(first, 1.0),  # the search moves slowly where it starts on a bound
        jac=slopes,
        bounds=(0.0, np.inf),
        loss="soft_l1",
        f_scale=ROBUST,
        x_scale=1.0,
        xtol=1e-3,
        ftol=1e-4,
        max_nfev=MOST_ROUNDS,
    )
    here, slope = errors(found.x), slopes(found.x)
    return _judged(names, found.x, here, slope, first, (here + 1) * measured)


def _judged(
    names: list[str], scaled: Floats, errors: Floats, slope: Floats, first: Floats, predicted: Floats
) -> Fit:
    """Return the fit with intervals, from the errors at its end and their derivatives."""
    felt = np.abs(slope).max(axis=0) > 1e-6
    free = len(errors) - int(felt.sum())
    spread = float(np.sqrt(np.sum(errors**2) / free))
    cover = np.linalg.pinv(slope[:, felt].T @ slope[:, felt]) * spread**2
    deviation = np.zeros(len(names))
    deviation[felt] = np.sqrt(np.diag(cover))
    wide = stats.t.ppf(0.5 + CONFIDENCE / 2, free) * deviation
    terms = {}
    for at, name in enumerate(names):
        least, change, _ = TERMS[name]
        place = scaled[at] if felt[at] else first[at]
        low = max(place - wide[at], 0.0)
        value, lower, upper = (float(least + change * end) for end in (place, low, place + wide[at]))
        terms[name] = Estimate(value, lower, upper, at_bound=bool(felt[at] and place < 1e-3))
    inside = [at for at in range(len(names)) if felt[at] and not terms[names[at]].at_bound]
    return Fit(
        terms,
        _inseparable(names, slope, inside),
        [name for at, name in enumerate(names) if not felt[at]],
        predicted,
    )


def _inseparable(names: list[str], slope: Floats, inside: list[int]) -> list[tuple[str, str, float]]:
    """Return the pairs of terms whose estimates correlate too much."""
    if len(inside) < 2:
        return []
    cover = np.linalg.pinv(slope[:, inside].T @ slope[:, inside])
    size = np.sqrt(np.diag(cover))
    correlation = cover / np.outer(size, size)
    return [
        (names[inside[one]], names[inside[other]], float(correlation[one, other]))
        for one in range(len(inside))
        for other in range(one)
        if abs(correlation[one, other]) > INSEPARABLE
    ]
