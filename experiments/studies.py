"""The studies whose tables and figures ``python -m experiments`` makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import plotly.graph_objects as go

from experiments.kv_tiers.figure import figure as what_tiers_buy
from experiments.one_user.roofline import figure as steps_on_the_roofline
from experiments.overload.figure import figure as what_becomes_of_attempts
from experiments.panels import over_load
from experiments.preemption.figure import figure as what_a_preemption_costs
from experiments.prefix_reuse.figure import figure as what_hits_are_worth
from servesim.report.frontier.page import Drawing, Sweep
from servesim.report.frontier.points import short_names, written
from servesim.report.metrics import COST, GOODPUT, GOODPUT_PER_GPU, INTERACTIVITY, OUTPUT, Metric, metric
from servesim.report.theme import plain

_GOODPUT, _MET = GOODPUT_PER_GPU.column, "goodput.attainment"
_HITS = "prefill.hit_rate"
_TTFT, _TPOT, _SEEN = "latency.ttft_s.p99", "latency.tpot_s.p99", INTERACTIVITY.column
_ENDS = tuple(
    f"accounting.{name}" for name in ("injected", "completed", "timed_out", "retries", "given_up", "success")
)
_LIGHT = "fairness.tenants.light.ttft_s.p99"
_MEAN_TTFT, _ITL = "latency.ttft_s.mean", "latency.itl_s.p99"
_HURRIED, _PATIENT = (f"fairness.tenants.{name}.ttft_s.p99" for name in ("hurried", "patient"))
_TALL = 720  # a figure of two rows of charts, in pixels
_TITLE = {"font": {"size": 14}, "x": 0.02, "xanchor": "left", "y": 0.98, "yanchor": "top"}

#: Returns a figure of a study, or of one of its panels.
Figure = Callable[[Drawing], go.Figure]


@dataclass(frozen=True)
class Study:
    """What is shown of a study.

    Attributes:
        name: of its folder, and of ``conf/experiment/<name>.yaml``.
        columns: figures of the table.
        figure: draws it.
        panels: axes; each combination of their values has a figure of its own.
        difference: the figure that the table compares with the baseline; empty: none.
        height: of a figure without panels, in pixels.

    """

    name: str
    columns: tuple[str, ...]
    figure: Figure
    panels: tuple[str, ...] = ()
    difference: str = ""
    height: int = 480

    def figures(self, sweep: Sweep) -> Mapping[str, go.Figure]:
        """Return the figures of a sweep by the names of their files, without the ending."""
        if not self.panels:
            return {"figure": _with_legend(self.figure(Drawing.of(sweep)))}
        found = {}
        names = short_names(self.panels).values()
        for values, rows in sweep.table.groupby(list(self.panels), sort=False):
            part = replace(sweep, table=rows.reset_index(drop=True))
            said = [
                text if isinstance(text, str) else f"{name}={written(text)}"
                for name, text in zip(names, values, strict=True)
            ]
            drawn = _with_legend(self.figure(Drawing.of(part)))
            drawn.update_layout(title={"text": plain(", ".join(said)), **_TITLE}, margin={"t": 72})
            found["_".join(written(value) for value in values)] = drawn
        return found


def _with_legend(figure: go.Figure) -> go.Figure:
    """Return a figure with a legend of its points, which a page has beside its charts, each series once.

    What is in another legend stays there.
    """
    named: set[str | None] = set()
    for trace in figure.data:
        if trace.legend is None:
            trace.showlegend = trace.mode == "markers" and trace.name not in named
            named |= {trace.name} if trace.showlegend else set()
    return figure.update_layout(showlegend=True)


def _front(x: Metric, y: Metric) -> Figure:
    """Return what draws one figure against another, with the Pareto front."""
    return lambda drawing: drawing.front("", x, y, "").figure


def _over_load(column: str) -> Figure:
    """Return what draws a figure against the load."""
    return lambda drawing: drawing.loaded("", metric(column), "").figure


def _panels(*rows: Sequence[str], loads: tuple[float, float] | None = None) -> Figure:
    """Return what draws rows of figures against the load; ``loads``: where the axis begins and ends."""
    axis = {} if loads is None else {"range": loads}
    return lambda drawing: over_load(drawing, *rows).update_xaxes(axis)


STUDIES = (
    Study(
        "one_user",
        ("utilisation.compute", "utilisation.bandwidth", _SEEN, OUTPUT.column, COST.column),
        lambda drawing: steps_on_the_roofline(),
    ),
    Study(
        "batching_frontier",
        (_GOODPUT, _MET, _TTFT, _TPOT, OUTPUT.column, COST.column),
        _front(INTERACTIVITY, OUTPUT),
        difference=_GOODPUT,
    ),
    Study(
        "three_schedulers",
        (_GOODPUT, _MET, _TTFT, _TPOT, OUTPUT.column),
        _over_load(_GOODPUT),
        panels=("workload/lengths",),
        difference=_GOODPUT,
    ),
    Study(
        "pd_ratio",
        (_GOODPUT, _MET, _TTFT, _TPOT),
        _over_load(_GOODPUT),
        panels=("workload/lengths", "slo.tpot_s"),
        difference=_GOODPUT,
    ),
    Study(
        "tp_choice",
        (_GOODPUT, _MET, _TTFT, _SEEN, OUTPUT.column, COST.column),
        _front(INTERACTIVITY, OUTPUT),
        difference=_GOODPUT,
    ),
    Study(
        "quantisation",
        (OUTPUT.column, _SEEN, "latency.tpot_s.p50", _TTFT, COST.column),
        _front(INTERACTIVITY, OUTPUT),
        difference=OUTPUT.column,
    ),
    Study(
        "speculation",
        (OUTPUT.column, _SEEN, "latency.tpot_s.p50", "latency.itl_s.p99", COST.column),
        _front(INTERACTIVITY, OUTPUT),
        difference=OUTPUT.column,
    ),
    Study(
        "prefix_reuse",
        (_HITS, "latency.ttft_s.mean", _TTFT, GOODPUT.column, COST.column),
        what_hits_are_worth,
        difference=COST.column,
    ),
    Study(
        "agentic",
        (_HITS, _TTFT, _SEEN, _MET, GOODPUT.column, COST.column),
        _over_load(COST.column),
        difference=COST.column,
    ),
    Study(
        "kv_tiers",
        (_MEAN_TTFT, _TTFT, "prefill.computed_tokens", _MET, COST.column),
        what_tiers_buy,
        difference=COST.column,
        height=_TALL,
    ),
    Study(
        "preemption",
        (OUTPUT.column, _ITL, "latency.e2e_s.mean", "accounting.preemptions", "prefill.computed_tokens"),
        what_a_preemption_costs,
        difference=OUTPUT.column,
        height=_TALL,
    ),
    Study(
        "kv_wall",
        (OUTPUT.column, "utilisation.kv_cache", "utilisation.compute", "latency.ttft_s.p50", _SEEN),
        _over_load(OUTPUT.column),
        panels=("workload/lengths",),
        difference=OUTPUT.column,
    ),
    Study(
        "fairness",
        (_LIGHT, "fairness.tenants.heavy.ttft_s.p99", "fairness.jain_index", OUTPUT.column),
        _over_load(_LIGHT),
        difference=_LIGHT,
    ),
    Study(
        "prefill_policy",
        (_TTFT, _ITL, _TPOT, _MET, GOODPUT.column, COST.column),
        _panels((_TTFT, _ITL), (_TPOT, GOODPUT.column)),
        difference=_ITL,
        height=_TALL,
    ),
    Study(
        "queue_order",
        (_MEAN_TTFT, _TTFT, _HURRIED, _PATIENT, _MET, OUTPUT.column),
        _panels((_MEAN_TTFT, _MET), (_HURRIED, _PATIENT), loads=(9.8, 13.2)),
        difference=_MEAN_TTFT,
        height=_TALL,
    ),
    Study(
        "overload",
        (GOODPUT.column, "throughput.requests_per_s", _TTFT, *_ENDS),
        what_becomes_of_attempts,
        difference=GOODPUT.column,
        height=_TALL,
    ),
    Study(
        "gpu_frontier",
        (_GOODPUT, _MET, _TTFT, _SEEN, OUTPUT.column, COST.column),
        _front(INTERACTIVITY, COST),
    ),
)
