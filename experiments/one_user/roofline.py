"""The steps of one user, and of 64, under the roofline of the GPU."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from servesim.config.loading import load
from servesim.report.roofline import roofline
from servesim.report.run.saved import Run
from servesim.report.run.steps import roofline_points
from servesim.simulation import run

USERS = (1, 64)
_CONVERSATION = (
    "workload/arrivals=closed_loop",
    "workload/lengths=conversation",
    "model=llama3.1-8b",
    "cluster.replicas=1",
    "cluster.tensor_parallel_size=1",
)
_MOST = 120  # points of each kind of step, so that the file stays small
_REQUESTS = 8  # per user, and at least so many times ten


def points(users: int) -> tuple[pd.DataFrame, Run]:
    """Return the steps of a conversation with so many users, and their run."""
    requests = max(_REQUESTS * users, 10 * _REQUESTS)
    scenario = load(*_CONVERSATION, f"workload.arrivals.concurrency={users}", f"workload.requests={requests}")
    seen = Run.of(run(scenario))
    steps = roofline_points(seen, seen.pools[0])
    thin = [rows.iloc[:: -(-len(rows) // _MOST)] for _, rows in steps.groupby("series", sort=False)]
    who = "1 user" if users == 1 else f"{users} users"
    return pd.concat(thin).assign(series=lambda rows: who + ": " + rows.series), seen


def figure(users: Sequence[int] = USERS) -> go.Figure:
    """Return the roofline with the steps of each number of users."""
    found = [points(each) for each in users]
    pool = found[0][1].pools[0]
    drawn = roofline(
        pd.concat([steps for steps, _ in found]),
        {"BF16": pool.peak_flops_per_s},
        pool.gpu.hbm_bytes_per_s,
    )
    return drawn.update_traces(marker={"size": 7, "opacity": 0.6}, selector={"mode": "markers"})
