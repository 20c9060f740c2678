"""First tokens and dollars over the number of agents, and where loading KV beats computing it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go

from experiments.panels import grid, loaded
from servesim.cluster.deployment import Deployment
from servesim.config.loading import load
from servesim.report.frontier.page import Drawing
from servesim.report.metrics import COST
from servesim.report.theme import NEUTRAL, blank, logarithmic

#: New tokens of a prompt behind those that are found, about as many as a tool's result has.
NEW = 500
#: Tokens that are found.
FOUND = np.geomspace(250, 120_000, 40).astype(int)
#: Tokens of a step.
BUDGET = 8192
#: Latency and bandwidth of the links in s and bytes/s, by the variant whose colour the line has.
LINKS = {"host": (20e-6, 0.8 * 64e9), "host and store": (4e-4, 0.7 * 50e9), "slow store": (4e-4, 3e9)}
_NAMES = {"host": "host, 51 GB/s", "host and store": "store, 35 GB/s", "slow store": "slow store, 3 GB/s"}
_ALONE = ("model=llama3.1-8b", "cluster.replicas=1", "cluster.tensor_parallel_size=1")


def figure(drawing: Drawing) -> go.Figure:
    """Return mean TTFT and cost over the agents, and TTFT of one request over what is found of its prompt."""
    over_agents = [loaded(drawing, column) for column in ("latency.ttft_s.mean", COST.column)]
    names = drawing.points.groupby("config").label.first()
    colours = {name: style.colour for name, style in zip(names, drawing.chosen, strict=True)}
    drawn = grid([over_agents, [_crossing(colours)]])
    return drawn.update_layout(legend2={"x": 0.01, "y": 0.4, "yanchor": "top"})


def computing_s(pool: Deployment, new: int, cached: int = 0) -> float:
    """Return the time of the steps that compute ``new`` tokens of a prompt behind ``cached`` ones, alone."""
    chunks = [(min(BUDGET, new - done), cached + done) for done in range(0, new, BUDGET)]
    return sum(pool.step_time.mixed(0, 0, [chunk]) for chunk in chunks)


def loading_s(pool: Deployment, tokens: int, latency_s: float, bytes_per_s: float) -> float:
    """Return the time of a copy: latency + tokens x KV bytes per token and GPU / bandwidth."""
    return latency_s + tokens * pool.sheet.kv_bytes_per_token / bytes_per_s


def _crossing(colours: Mapping[str, str]) -> go.Figure:
    """Return the TTFT of a request by itself, over what is found of its prompt, by where that is found."""
    (pool,) = load(*_ALONE).deployments()
    rest_s = np.array([computing_s(pool, NEW, found) for found in FOUND])
    lines = {"computed": (NEUTRAL, np.array([computing_s(pool, found + NEW) for found in FOUND]))}
    for name, link in LINKS.items():
        lines[_NAMES[name]] = (colours[name], rest_s + [loading_s(pool, found, *link) for found in FOUND])
    lines["on the GPU"] = (colours["endless GPU"], rest_s)
    drawn = blank(
        x=f"Tokens found of a prompt, with {NEW} new ones behind them",
        y="TTFT of one request by itself (s)",
        xaxis=logarithmic(FOUND),
        yaxis=logarithmic(*(seconds for _, seconds in lines.values())),
    )
    for name, (colour, seconds) in lines.items():
        drawn.add_scatter(x=FOUND, y=seconds, mode="lines", name=name, line_color=colour, legend="legend2")
    return drawn
