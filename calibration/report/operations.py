"""What the page says of each operation: its sizes, its work, and what the words mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from calibration.fit import jobs
from calibration.fit.job import Array, Job
from calibration.fit.jobs import Work

Size = Callable[[pd.DataFrame], pd.Series]


@dataclass(frozen=True)
class Axis:
    """A size of the rows that errors are shown by, with its title."""

    title: str
    of: Size


@dataclass(frozen=True)
class Operation:
    """An operation on the page.

    ``size`` is what errors are plotted by, ``regions`` the two sizes of the map of errors. ``work`` gives
    FLOPs and bytes, ``moved`` the bytes of an operation without FLOPs (``limit``: the figure of the GPU that
    bounds them).
    """

    title: str
    lead: str
    size: Axis
    regions: tuple[Axis, Axis] | None = None
    work: Callable[[Job, pd.DataFrame], Work] | None = None
    moved: Callable[[Job, pd.DataFrame], Array] | None = None
    limit: str = "hbm_bytes_per_s"


def _column(name: str) -> Size:
    return lambda rows: rows[name]


TOKENS = Axis("Tokens m", _column("m"))

#: By the name that profiles have for it.
PAGE_OPERATIONS = {
    "gemm": Operation(
        title="Matrix products",
        lead="C[m, n] = A[m, k] B[k, n]: m tokens through a layer of n outputs and k inputs.",
        size=TOKENS,
        regions=(TOKENS, Axis("Weights n x k", lambda rows: rows.n * rows.k)),
        work=lambda job, rows: jobs.gemm_work(job.name, rows),
    ),
    "decode_attention": Operation(
        title="Decode attention",
        lead="One new token of each sequence attends to a paged KV cache; formats are those of the cache.",
        size=Axis("KV tokens of the batch, batch x length", lambda rows: rows.batch * rows.length),
        regions=(
            Axis("KV length (tokens)", _column("length")),
            Axis("Batch (sequences)", _column("batch")),
        ),
        work=lambda job, rows: jobs.decode_work(job.name, rows),
    ),
    "prefill_attention": Operation(
        title="Prefill attention",
        lead="Causal attention of prompts, or of chunks behind a cached prefix.",
        size=Axis("New tokens of the batch, batch x length", lambda rows: rows.batch * rows.length),
        regions=(
            Axis("New tokens of a sequence", _column("length")),
            Axis("Batch x query heads", lambda rows: rows.batch * rows.heads),
        ),
        work=lambda job, rows: jobs.prefill_work(rows),
    ),
    "all_reduce": Operation(
        title="All-reduce",
        lead="The sum of the partial results of all GPUs of a replica, by number of GPUs.",
        size=Axis("Message (bytes)", _column("bytes")),
        moved=lambda job, rows: jobs.all_reduce_bytes(int(rows.gpus.iloc[0]), rows),
        limit="nvlink_bytes_per_s",
    ),
    "moe": Operation(
        title="Experts",
        lead="The two grouped products of a mixture of experts, with the activation between them.",
        size=Axis("Tokens", _column("tokens")),
        regions=(
            Axis("Tokens", _column("tokens")),
            Axis("Expert, hidden x inter", lambda rows: rows.hidden * rows.inter),
        ),
        work=lambda job, rows: jobs.moe_work(job.name, rows),
    ),
    "quantise": Operation(
        title="Quantisation",
        lead="Activations [m, k] to FP8: by a given scale (static), or by one that is found first (dynamic).",
        size=Axis("Activations m x k", lambda rows: rows.m * rows.k),
        regions=(TOKENS, Axis("Width k", _column("k"))),
        moved=lambda job, rows: jobs.quantise_bytes(rows),
    ),
}
