"""What all charts of a sweep's page share: its points, and how they are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from servesim.report.content import Chart
from servesim.report.frontier.curves import curves
from servesim.report.frontier.details import Details, details, hover
from servesim.report.frontier.points import CLEAN, LOADS, UNCLEAN, drawn_points, load_of
from servesim.report.frontier.style import Style, styles
from servesim.report.frontier.view import View
from servesim.report.metrics import ATTAINMENT, COST, INTERACTIVITY, OUTPUT, Metric, metric

#: What the SLO can limit: its short name, and the factor to the unit that it is told in.
LIMITS = {"ttft_s": ("TTFT", 1.0, "s"), "tpot_s": ("TPOT", 1e3, "ms"), "e2e_s": ("E2E", 1.0, "s")}

_WIDE = 10  # highest over lowest load beyond which an axis is logarithmic
_MANY = 6  # configurations from which on bands, drawn over each other, hide more than they show
#: The share of simulated time that lies outside the calibrated ranges.
EXTRAPOLATED = "calibration.extrapolated"

#: The column that only points with conversations have, whose rate is that of sessions.
_SESSIONS = "sessions.begun"

_SHADED = "Shaded: where the figure shown is within the limit of the SLO."
#: What is said of points that lost too many requests, where they are left out and where they are drawn.
_LEFT_OUT = (
    "Left out: points that lost so many requests that they miss the SLO; they show those served alone."
)
_SERVED = "Of points that lost requests (hollow, with a dot), it is that of the requests served."


@dataclass(frozen=True)
class Sweep:
    """A sweep as its page sees it.

    Attributes:
        table: one row per point, as ``sweep.parquet`` has it.
        name: of the study.
        question: that it answers.
        same: the overrides that hold for every point.
        compare: columns of the figures to show first.
        baseline: the variant that others are compared with.
        declared_load: the column of the load, where the study names one.

    """

    table: pd.DataFrame
    name: str
    question: str = ""
    same: Sequence[str] = ()
    compare: Sequence[str] = ()
    baseline: str | None = None
    declared_load: str | None = None


@dataclass(frozen=True)
class Drawing:
    """What all charts of a page share: the points, and how they are drawn."""

    sweep: Sweep
    load: str | None
    points: pd.DataFrame
    said: Sequence[Details]
    chosen: Sequence[Style]
    limits: dict[str, float]

    @classmethod
    def of(cls, sweep: Sweep) -> Drawing:
        """Return the drawing of a sweep."""
        load = load_of(sweep.table, sweep.declared_load)
        outside = [EXTRAPOLATED] if EXTRAPOLATED in sweep.table else []
        points = drawn_points(sweep.table, load, [*sweep.compare, *outside])
        said = details(points, sweep.table)
        points["text"] = hover(said)
        chosen = styles(points.config.nunique(), _ranked(points))
        return cls(sweep, load, points, said, chosen, limits_of(sweep.table))

    def load_axis(self, *, linear: bool = False) -> Metric:
        """Return the load as a figure, on a logarithmic axis where it spans much."""
        name, unit = LOADS.get(self.load or "", ("Load", str(self.load)))
        if (
            unit == "requests/s"
            and _SESSIONS in self.sweep.table
            and self.sweep.table[_SESSIONS].notna().all()
        ):
            unit = "sessions/s"
        lowest, highest = self.points.load.min(), self.points.load.max()
        wide = lowest > 0 and highest > _WIDE * lowest
        return Metric("load", f"{name} ({unit})", unit, logarithmic=wide and not linear)

    @property
    def bands(self) -> bool:
        """Whether intervals are seen before they are asked for."""
        return len(self.chosen) < _MANY

    @property
    def target(self) -> float | None:
        """The share of requests that is to meet the SLO, where all points share it."""
        table = self.sweep.table
        targets = set(table["goodput.target"].dropna()) if "goodput.target" in table else set()
        return float(min(targets)) if len(targets) == 1 else None

    @property
    def metrics(self) -> list[Metric]:
        """The figures that the study compares."""
        return [metric(column) for column in self.sweep.compare if column in self.points]

    def front(self, name: str, x: Metric, y: Metric, caption: str, *, wide: bool = False) -> Chart:
        """Return a chart of one figure against another, with the Pareto front."""
        height = 460 if wide else 400
        bounded = bool(self.limits.keys() & {x.limit, y.limit})
        lost = self._lost & bounded
        figure = curves(
            self.points.assign(**{y.column: self.points[y.column].mask(lost)}),
            x,
            y,
            self.chosen,
            limits=self.limits,
            front=True,
            bands=self.bands,
            height=height,
        )
        said = [caption, *([_SHADED] if bounded else []), *([_LEFT_OUT] if lost.any() else [])]
        return Chart(name, figure, " ".join(said), wide)

    @property
    def _lost(self) -> pd.Series:
        """Say which points lost requests and miss the SLO, so that latencies of those served flatter them."""
        return (self.points.state == UNCLEAN) & (self.points.unclean > 0)

    def loaded(self, name: str, y: Metric, caption: str, *, knees: bool = False) -> Chart:
        """Return a chart of a figure against the load; the SLO's target is a line in its attainment."""
        figure = curves(
            self.points,
            self.load_axis(),
            y,
            self.chosen,
            limits=self.limits,
            knees=knees,
            target=self.target if y == ATTAINMENT else None,
            bands=self.bands,
        )
        said = [caption]
        if y.limit in self.limits:
            said += [_SHADED, *([_SERVED] if self._lost.any() else [])]
        return Chart(name, figure, " ".join(said))


def _ranked(points: pd.DataFrame) -> list[int]:
    """Return the configurations, those on a Pareto front first, and each part from the cheapest on."""
    fronts = View(points, INTERACTIVITY, OUTPUT).front | View(points, INTERACTIVITY, COST).front
    clean = points.assign(behind=~fronts, usd=points[COST.column].where(points.state == CLEAN))
    ranks = clean.groupby("config").agg(behind=("behind", "min"), usd=("usd", "min"))
    return [int(config) for config in ranks.sort_values(["behind", "usd"], kind="stable").index]


def limits_of(table: pd.DataFrame) -> dict[str, float]:
    """Return the limits of the SLO in seconds that all points share."""
    columns = {name: f"goodput.limits.{name}" for name in LIMITS}
    found = {name: table[column].dropna().unique() for name, column in columns.items() if column in table}
    return {name: float(values[0]) for name, values in found.items() if len(values) == 1}
