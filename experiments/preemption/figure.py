"""Throughput and gaps over the users, and what one preemption costs by the length of the sequence."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go

from experiments.panels import grid, loaded
from servesim.cluster.deployment import Deployment
from servesim.config.loading import load
from servesim.report.frontier.page import Drawing
from servesim.report.metrics import OUTPUT
from servesim.report.theme import blank, logarithmic

#: Tokens of the sequence that is preempted.
TOKENS = np.geomspace(100, 8000, 40).astype(int)
#: Bandwidth of the copies in bytes/s, by variant.
LINKS = {
    f"swap, {said}": share * 64e9
    for said, share in (("51 GB/s", 0.8), ("13 GB/s", 0.2), ("6.4 GB/s", 0.1), ("3.2 GB/s", 0.05))
}
#: Sequences that decode beside it, and the tokens of KV that they read.
BESIDE = (96, 96 * 4000)
_ALONE = ("model=llama3.1-8b", "cluster.replicas=1", "cluster.tensor_parallel_size=1")


def figure(drawing: Drawing) -> go.Figure:
    """Return throughput and p99 ITL over the users, and the cost of one preemption over its tokens."""
    over_users = [loaded(drawing, column) for column in (OUTPUT.column, "latency.itl_s.p99")]
    names = drawing.points.groupby("config").label.first()
    colours = {name: style.colour for name, style in zip(names, drawing.chosen, strict=True)}
    drawn = grid([over_users, [_costs(colours)]])
    drawn.update_traces(visible=False, selector={"name": "interval"})  # of differences it is that counts
    return drawn.update_yaxes(range=[2200, 3200], row=1, col=1)


def recompute_s(pool: Deployment, tokens: int) -> float:
    """Return by how much a step of the decodes lasts longer that computes a sequence again."""
    return pool.step_time.mixed(*BESIDE, [(tokens, 0)]) - pool.step_time.mixed(*BESIDE, [])


def swap_s(pool: Deployment, tokens: int, bytes_per_s: float) -> float:
    """Return the time of two copies: 2 x tokens x KV bytes per token and GPU / bandwidth."""
    return 2 * tokens * pool.sheet.kv_bytes_per_token / bytes_per_s


def _costs(colours: Mapping[str, str]) -> go.Figure:
    """Return the time that all who decode lose by one preemption, over the tokens of who is preempted."""
    (pool,) = load(*_ALONE).deployments()
    lines = {"recompute": [recompute_s(pool, tokens) for tokens in TOKENS]}
    lines |= {name: [swap_s(pool, tokens, link) for tokens in TOKENS] for name, link in LINKS.items()}
    drawn = blank(
        x="Tokens of the preempted sequence",
        y="Time that its preemption takes (s)",
        xaxis=logarithmic(TOKENS),
        yaxis=logarithmic(*lines.values()),
    )
    for name, seconds in lines.items():
        drawn.add_scatter(x=TOKENS, y=seconds, mode="lines", name=name, line_color=colours[name])
    return drawn
