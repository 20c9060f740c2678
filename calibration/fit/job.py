"""One fit: which rows, which form, which coefficients, and how it is scored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import least_squares

from calibration.fit.errors import Errors
from calibration.fit.split import MOST_TO_LEAVE_ONE_OUT, folds, held_out

Array = NDArray[Any]

#: Log errors beyond this count linearly: a form cannot follow the bimodal choices of kernel libraries, and
#: should not be bent by them.
ROBUST = 0.1

#: Steps after which a search ends; most take 10 to 30.
MOST_STEPS = 60

#: A table of fewer rows is not split.
FEWEST_TO_SPLIT = 60

#: The name of the subset that is everything.
ALL = "all"


class Start(NamedTuple):
    """Where the search for a coefficient starts, and its bounds; all positive."""

    at: float
    low: float
    high: float


@dataclass(frozen=True)
class Job:
    """A fit of one form to the rows of one table.

    ``build`` makes the form from coefficients, ``predict`` its times of some rows, ``roofline`` the
    datasheet's. ``shape`` are the columns that decide the split, ``group`` those that make a whole shape,
    ``ranges`` those whose extent is what the form is calibrated for. ``excluded`` rows are not fitted
    (measured below the datasheet's floor) but counted. ``subsets`` are scored by themselves. ``starts``
    holds further starting points, for forms whose error has several minima, and ``choices`` what else a
    form is built with, of which the best is taken. ``sources`` names the files of the rows.
    """

    operation: str
    name: str
    rows: pd.DataFrame
    shape: tuple[str, ...]
    group: tuple[str, ...]
    ranges: tuple[str, ...]
    coefficients: Mapping[str, Start]
    build: Callable[..., Any]
    predict: Callable[[Any, pd.DataFrame], Array]
    roofline: Callable[[pd.DataFrame], Array]
    excluded: Array | None = None
    subsets: Mapping[str, Array] = field(default_factory=dict)
    starts: tuple[Mapping[str, float], ...] = ({},)
    choices: tuple[Mapping[str, Any], ...] = ({},)
    sources: tuple[str, ...] = ()

    def fit(self, rows: pd.DataFrame, near: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the coefficients with the least error on ``rows``, rounded to four digits.

        Least squares on log(predicted / measured), made robust by a soft L1 loss; coefficients are sought
        on a log scale. ``near`` are coefficients of almost the same rows: the search starts there, ends
        sooner, and keeps what was chosen.
        """
        names = list(self.coefficients)
        low, high = np.log([[start.low, start.high] for start in self.coefficients.values()]).T
        measured = np.log(rows.seconds.to_numpy())

        def residuals(point: Array, choice: Mapping[str, Any]) -> Array:
            form = self.build(**dict(zip(names, np.exp(point), strict=True)), **choice)
            return np.log(self.predict(form, rows)) - measured

        def found(start: Mapping[str, float], choice: Mapping[str, Any]) -> Any:
            at = np.log([start.get(name, self.coefficients[name].at) for name in names])
            inside = np.clip(at, low + 1e-6, high - 1e-6)
            return least_squares(
                residuals,
                inside,
                kwargs={"choice": choice},
                bounds=(low, high),
                loss="soft_l1",
                f_scale=ROBUST,
                diff_step=1e-4,
                ftol=1e-8 if near is None else 1e-6,
                max_nfev=MOST_STEPS,
            )

        starts, choices = self.starts, self.choices
        if near is not None:
            starts, choices = (near,), ({name: near[name] for name in self.choices[0]},)
        tried = [(found(start, choice), choice) for start in starts for choice in choices]
        best, chosen = min(tried, key=lambda each: each[0].cost)
        values = zip(names, np.exp(best.x), strict=True)
        return {name: float(f"{value:.4g}") for name, value in values} | dict(chosen)

    @property
    def usable(self) -> Array:
        """Whether each row may be fitted and scored."""
        return np.ones(len(self.rows), bool) if self.excluded is None else ~self.excluded

    @property
    def is_split(self) -> bool:
        """Whether there are enough rows to hold some out; otherwise all are fitted."""
        return bool(self.usable.sum() >= FEWEST_TO_SPLIT)

    def shipped(self) -> dict[str, Any]:
        """Return the coefficients of the profile: those of split 0, or of all rows where they are few."""
        fitted = self.usable
        if self.is_split:
            fitted = fitted & ~held_out(self.rows, self.shape)[:, 0]
        return self.fit(self.rows[fitted])

    def fitted(self) -> Fitted:
        """Fit the profile's coefficients; score them, the other splits, whole shapes and the datasheet.

        Few rows are scored on each shape left out of the fit.
        """
        coefficients = self.shipped()
        left_out = self._whole_shapes(coefficients)
        if self.is_split:
            masks = list((self.usable[:, None] & held_out(self.rows, self.shape)).T)
            splits = [self._split_scores(coefficients, masks[0])]
            for mask in masks[1:]:
                refit = self.fit(self.rows[self.usable & ~mask], near=coefficients)
                splits.append(self._split_scores(refit, mask))
        else:
            masks = [self.usable]
            splits = [self._scores(self.usable, left_out[0])]
        held = self.rows[masks[0]]
        roofline = Errors.of(self.roofline(held), held.seconds)
        return Fitted(self, coefficients, splits, left_out, roofline)

    def _split_scores(self, coefficients: Mapping[str, Any], mask: Array) -> dict[str, Errors]:
        return self._scores(mask, self.predict(self.build(**coefficients), self.rows[mask]))

    def _scores(self, mask: Array, predicted: Array) -> dict[str, Errors]:
        """Return the errors on the rows of ``mask``, of all of them and of each subset."""
        measured = self.rows.seconds.to_numpy()[mask]
        parts = {ALL: np.ones(len(measured), bool)} | {
            name: part[mask] for name, part in self.subsets.items()
        }
        return {
            name: Errors.of(predicted[part], measured[part]) for name, part in parts.items() if part.any()
        }

    def _whole_shapes(self, near: Mapping[str, Any]) -> tuple[Array, Array]:
        """Return predicted and measured times of shapes of which no row was fitted, fold by fold.

        Where folds are few shapes, or one, each fit starts afresh: starting near coefficients that have seen
        them could flatter it.
        """
        rows = self.rows[self.usable]
        fold = folds(rows, self.group)
        predicted = np.empty(len(rows))
        fresh = len(set(zip(*(rows[name] for name in self.group), strict=True))) <= MOST_TO_LEAVE_ONE_OUT
        for each in np.unique(fold):
            here = fold == each
            refit = self.fit(rows[~here], None if fresh else near)
            predicted[here] = self.predict(self.build(**refit), rows[here])
        return predicted, rows.seconds.to_numpy()


@dataclass(frozen=True)
class Fitted:
    """A fitted job: its coefficients, and its errors by split and subset (the first split is its own).

    ``left_out`` are predicted and measured times of whole shapes left out of the fit.
    """

    job: Job
    coefficients: dict[str, Any]
    splits: list[dict[str, Errors]]
    left_out: tuple[Array, Array]
    roofline: Errors

    @property
    def form(self) -> Any:
        """The form with its fitted coefficients."""
        return self.job.build(**self.coefficients)

    @property
    def held_out(self) -> Errors:
        """The errors on the rows held out when the coefficients were fitted."""
        return self.splits[0][ALL]

    @property
    def whole_shapes(self) -> Errors:
        """The errors on whole shapes left out of the fit."""
        return Errors.of(*self.left_out)

    def mean(self, subset: str) -> Errors:
        """Return the errors on a subset (ALL: on all rows), averaged over the splits that hold any of it."""
        return Errors.mean([scores[subset] for scores in self.splits if subset in scores])

    def spread(self, figure: str) -> tuple[float, float]:
        """Return the least and the largest of an error figure over the splits."""
        values = [getattr(scores[ALL], figure) for scores in self.splits]
        return min(values), max(values)
