"""The steps of a run: on the roofline, and what a typical one consists of."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from servesim.cost.step_time import Operation, StepTime
from servesim.report.run.saved import Pool, Run
from servesim.report.theme import blank, colour, plain
from servesim.report.thin import thinned
from servesim.screen.figures import counted

#: Points on the roofline.
MOST_POINTS = 2500

#: Pixels of a bar that its figure has room beside, and of a drawing at least.
BAR_HEIGHT, LEAST_HEIGHT = 16, 420


def roofline_points(run: Run, pool: Pool) -> pd.DataFrame:
    """Return the leaps of a pool as :func:`servesim.report.roofline.roofline` takes them, per GPU."""
    steps = thinned(run.steps_of(pool), MOST_POINTS, ["replica", "start_s"])
    kinds = np.where(steps.prefill_tokens > 0, "steps with prompts", "decode steps")
    return pd.DataFrame(
        {
            "series": kinds,
            "intensity": steps.flops / steps.hbm_bytes,
            "flops_per_s": steps.flops / steps.seconds / pool.tensor_parallel_size,
            "text": [_told(leap) for leap in steps.to_dict("records")],
        }
    ).sort_values("series", kind="stable")


def _told(leap: Mapping[Hashable, Any]) -> str:
    return (
        f"{leap['steps']:,} x {1e3 * leap['seconds'] / leap['steps']:.2f} ms at {leap['start_s']:.3f} s: "
        f"{leap['sequences']:,} sequences, {leap['prefill_tokens']:,} prompt tokens"
    )


class Typical(NamedTuple):
    """A step that stands for its kind: decodes with their context, and the prompt tokens of a chunk."""

    name: str
    decodes: int
    context: int
    chunk: int

    def operations(self, step_time: StepTime) -> list[Operation]:
        """Return what the step consists of."""
        chunks = [(self.chunk, 0)] if self.chunk else []
        return step_time.breakdown(self.decodes, self.context, chunks)

    def __str__(self) -> str:
        parts = [counted(self.chunk, "prompt token")] if self.chunk else []
        if self.decodes:
            parts.append(
                f"{counted(self.decodes, 'decode')} at {self.context / self.decodes:,.0f} tokens of KV"
            )
        return f"{self.name}: {' beside '.join(parts)}"


def typical_steps(steps: pd.DataFrame) -> list[Typical]:
    """Return the median decode step and the median step with prompts, by the time spent in their kind.

    Half of the time that the pool spent on steps of a kind went to shorter ones. Prompt tokens are taken as
    one chunk behind no cached ones, as a run keeps no account of single chunks.
    """
    has_prompts = steps.prefill_tokens > 0
    kinds = {"decode step": steps[~has_prompts], "step with prompts": steps[has_prompts]}
    return [_typical(name, rows) for name, rows in kinds.items() if len(rows)]


def _typical(name: str, rows: pd.DataFrame) -> Typical:
    ordered = rows.sort_values("first_step_s", kind="stable")
    spent = ordered.seconds.cumsum()
    step = ordered.iloc[int((spent < spent.iloc[-1] / 2).sum())]
    chunk = int(step.prefill_tokens)
    decodes = int(step.decodes if chunk else step.sequences)
    context = max(int(step.context_tokens) - chunk, decodes) if decodes else 0
    return Typical(name, decodes, context, chunk)


def breakdown_figure(breakdowns: Sequence[tuple[Typical, Sequence[Operation]]]) -> go.Figure:
    """Return the time of each operation in typical steps, a colour per step."""
    bars = sum(len(operations) for _, operations in breakdowns)
    figure = blank(
        x="Time in the step (ms)",
        y="",
        height=max(LEAST_HEIGHT, 120 + BAR_HEIGHT * bars),
        barmode="group",
        yaxis={"type": "category", "autorange": "reversed"},
    )
    for index, (typical, operations) in enumerate(breakdowns):
        total_s = sum(one.seconds for one in operations)
        figure.add_bar(
            y=[one.name.replace("_", " ") for one in operations],
            x=[1e3 * one.seconds for one in operations],
            orientation="h",
            name=plain(f"{typical.name}, {1e3 * total_s:.2f} ms"),
            marker={"color": colour(index)},
            text=[f"{one.seconds / total_s:.0%}" for one in operations],
            textposition="outside",
            textfont={"size": 12},
            constraintext="none",
            cliponaxis=False,
            customdata=[one.bound for one in operations],
            hovertemplate="%{y}: %{x:.3f} ms, %{text} of the step, bound by %{customdata}"
            "<extra>%{fullData.name}</extra>",
        )
    return figure.update_layout(showlegend=True)
