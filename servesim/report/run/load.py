"""The load of a run over time: batches, queues, KV, and how much of the GPUs was used."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from servesim.report.run.bins import Floats, binned, edges, steps_line
from servesim.report.run.saved import Pool, Run
from servesim.report.theme import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILLION, blank, colour

SHARES = {"busy": PURPLE, "bandwidth": BLUE, "compute": VERMILLION}


def load_over_time(run: Run, pool: Pool) -> pd.DataFrame:
    """Return the means over each bin of time, of one pool; the index is the left edge in seconds.

    Columns: ``sequences`` in the batch of a replica, ``waiting`` requests in the queues of all its replicas
    while they compute, ``kv`` share of the blocks held, and shares of GPU time: ``busy``, ``compute`` (of
    the peak of the weights' format) and ``bandwidth``. Between steps batch and blocks count as empty. FLOPs
    and bytes are spread evenly over a leap, KV blocks by the mean of its first and last step.
    """
    at = edges(*run.span)
    steps = run.steps_of(pool)
    width, start, end, seconds = at[1] - at[0], steps.start_s, steps.end_s, steps.seconds
    blocks = (steps.kv_blocks + steps.kv_blocks_last) / 2
    replica_s, gpu_s = width * pool.replicas, width * pool.gpus

    def mean(amounts: pd.Series, over: float) -> Floats:
        return binned(start, end, amounts, at) / over

    return pd.DataFrame(
        {
            "sequences": mean(steps.sequences * seconds, replica_s),
            "waiting": mean(steps.waiting * seconds, width),
            "kv": mean(blocks * seconds, replica_s * pool.kv_blocks),
            "busy": mean(seconds, replica_s),
            "compute": mean(steps.flops, gpu_s * pool.peak_flops_per_s),
            "bandwidth": mean(steps.hbm_bytes, gpu_s * pool.gpu.hbm_bytes_per_s),
        },
        index=pd.Index(at[:-1], name="start_s"),
    )


def waiting_over_time(run: Run) -> pd.Series:
    """Return the mean number of requests not yet scheduled, by bins; the index is the left edge in seconds.

    A request waits from its arrival for ``queue_s``, one that was never scheduled until its client hung up
    or the run ended, and one that never arrived, not at all. Mean times length of all bins is the sum of what
    all requests waited.
    """
    at = edges(*run.span)
    waited = run.requests[(run.requests.status != "dropped") & run.requests.routing_s.notna()]
    arrived_s = waited.sent_s + waited.routing_s
    seconds = waited.queue_s.fillna(waited.ended_s.fillna(at[-1]) - arrived_s).clip(lower=0)
    amounts = binned(arrived_s, arrived_s + seconds, seconds, at)
    return pd.Series(amounts / (at[1] - at[0]), index=pd.Index(at[:-1], name="start_s"))


def line(table: pd.DataFrame | pd.Series, end_s: float) -> dict[str, object]:
    """Return x, y and shape of a line through binned means."""
    x, y = steps_line(np.append(table.index.to_numpy(float), end_s), table.to_numpy(float))
    return {"x": x, "y": y, "mode": "lines", "line_shape": "hv"}


def batch_figure(loads: dict[str, pd.DataFrame], end_s: float) -> go.Figure:
    """Return the mean batch of a replica, a line per pool (by its title)."""
    figure = blank(x="Time (s)", y="Sequences in a batch", height=300, yaxis={"rangemode": "tozero"})
    for index, (title, table) in enumerate(loads.items()):
        figure.add_scatter(
            **line(table.sequences, end_s),
            name=title,
            line_color=colour(index),
            hovertemplate="%{y:.3s}<extra>%{fullData.name}</extra>",
        )
    return figure.update_layout(hovermode="x unified", showlegend=len(loads) > 1)


def queue_figure(waiting: pd.Series, loads: dict[str, pd.DataFrame], end_s: float) -> go.Figure:
    """Return the requests not yet scheduled, and those waiting for a decode pool, if there is one."""
    queues = {"waiting for their first step": waiting}
    queues |= {
        f"waiting in the {title}": table.waiting for title, table in loads.items() if "decode" in title
    }
    most = max(float(series.max()) for series in queues.values())
    figure = blank(x="Time (s)", y="Requests", height=300, yaxis={"range": [0, max(1.0, 1.05 * most)]})
    for (name, series), hue in zip(queues.items(), (ORANGE, PURPLE), strict=False):
        figure.add_scatter(
            **line(series, end_s),
            name=name,
            line_color=hue,
            hovertemplate="%{y:.3s}<extra>%{fullData.name}</extra>",
        )
    return figure.update_layout(hovermode="x unified", showlegend=True)


def kv_figure(loads: dict[str, pd.DataFrame], end_s: float) -> go.Figure:
    """Return the share of the KV blocks that is held, a line per pool."""
    figure = blank(
        x="Time (s)", y="KV blocks held", height=300, yaxis={"tickformat": ".3~%", "rangemode": "tozero"}
    )
    for index, (title, table) in enumerate(loads.items()):
        figure.add_scatter(
            **line(table.kv, end_s),
            name=title,
            line_color=(GREEN, SKY)[index % 2],
            hovertemplate="%{y:.2%}<extra>%{fullData.name}</extra>",
        )
    return figure.update_layout(hovermode="x unified", showlegend=len(loads) > 1)


def utilisation_figure(table: pd.DataFrame, end_s: float) -> go.Figure:
    """Return the shares of a pool's GPU time, compute and bandwidth that were used."""
    figure = blank(x="Time (s)", y="Share used", height=300, yaxis={"tickformat": ".0%", "range": [0, 1.03]})
    for name, hue in SHARES.items():
        figure.add_scatter(
            **line(table[name], end_s),
            name=name,
            line_color=hue,
            hovertemplate="%{y:.2%}<extra>%{fullData.name}</extra>",
        )
    return figure.update_layout(hovermode="x unified")
