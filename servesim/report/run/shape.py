"""Whether what a folder holds has the shape of a run of this version, before anything is drawn from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from servesim.check import Problem
from servesim.config.saved import scenario_problems
from servesim.results.columns import REQUESTS, STEPS

_LEFT_OVER = ("running", "queued", "not_sent", "length_capped", "zero_output_rows")
_ENDS = ("injected", "completed", "dropped", "timed_out", *_LEFT_OVER, "preemptions", "clean")
_RETRIES = ("retries", "retries_pending", "given_up", "success")
_STATISTICS = ("n", "mean", "p50", "p90", "p95", "p99", "max")

#: The keys that pictures read, by the mapping of a summary that has them.
_KEYS: dict[str, tuple[str, ...]] = {
    "traffic": ("requests", "offered_per_s", "input_tokens", "output_tokens"),
    "accounting": (*_ENDS, *_RETRIES),
    "latency": ("ttft_s", "tpot_s", "itl_s", "e2e_s", "client_queue_s", "user_e2e_s", "interactivity"),
    "latency.ttft_s": _STATISTICS,
    "latency.tpot_s": _STATISTICS,
    "latency.itl_s": _STATISTICS,
    "latency.e2e_s": _STATISTICS,
    "latency.client_queue_s": _STATISTICS,
    "latency.user_e2e_s": _STATISTICS,
    "latency.interactivity": _STATISTICS,
    "prefill": ("computed_tokens", "cached_tokens", "evicted_blocks", "recovered_tokens", "hit_rate"),
    "breakdown_s": ("routing", "queue", "prefill", "preempted", "transfer", "decode_queue", "decode"),
    "throughput": ("requests_per_s", "output_tokens_per_s", "total_tokens_per_s", "roles"),
    "goodput": ("limits", "target", "cut", "attainment", "met", "requests_per_s"),
    "goodput.limits": ("ttft_s", "tpot_s", "e2e_s"),
    "utilisation": ("compute", "bandwidth", "kv_cache", "busy", "roles"),
    "memory": (),
    "cost": ("gpu_hours", "usd", "usd_per_million_output_tokens", "usd_per_request"),
    "energy": ("joules", "joules_per_output_token", "power_weights"),
    "calibration": ("name", "calibrated", "interpolated", "extrapolated", "operations"),
}

#: The same of sections that not every run has.
_OPTIONAL: Mapping[str, tuple[str, ...]] = {
    "sessions": (
        "begun",
        "completed",
        "turns_given_up",
        "requests",
        "requests_meant",
        "begun_for_s",
        "duration_s",
        "first_turns",
        "later_turns",
    ),
    "speculation": ("kind", "num_speculative_tokens", "mean_accepted_length", "accepted_share"),
    "fairness": ("jain_index", "backlogged_s", "number", "tenants"),
    "classes": (),
    "offload": ("loaded_tokens", "host", "store"),
    "swap": ("out", "out_blocks", "in_blocks", "refused", "seconds"),
}

#: Columns without which a row has no place in a drawing.
_NEVER_NULL = {"requests": ("sent_s", "status"), "steps": ("replica", "start_s", "first_step_s", "steps")}
_SCHEMAS = {"requests": REQUESTS, "steps": STEPS}


def summary_problems(summary: Any) -> Iterator[Problem]:
    """Yield what a summary lacks, by its place in it."""
    if not isinstance(summary, Mapping):
        yield Problem("", summary, "must be keys with values")
        return
    yield from scenario_problems(summary.get("scenario"))
    wrong: list[str] = []
    optional = {name: keys for name, keys in _OPTIONAL.items() if summary.get(name) is not None}
    for path, names in (_KEYS | optional).items():
        if any(path.startswith(f"{other}.") for other in wrong):
            continue
        part = _at(summary, path)
        if not isinstance(part, Mapping):
            wrong.append(path)
            yield Problem(path, part, "must be keys with values")
        else:
            yield from (Problem(f"{path}.{name}", None, "is missing") for name in names if name not in part)
    for name in ("duration_s", "window_s") if _at(summary, "accounting.injected") != 0 else ():
        if not _is_length(summary.get(name)):
            yield Problem(name, summary.get(name), "must be a number of at least 0 (s)")
    yield from (
        Problem(name, None, "is missing")
        for name in ("saturated", "overloaded", "settled", "transfer", "offload", "swap")
        if name not in summary
    )
    cluster = _at(summary, "scenario.cluster")
    roles = ("prefill", "decode") if isinstance(cluster, Mapping) and "prefill" in cluster else ("serve",)
    for role in roles:
        if not _is_length(_at(summary, f"memory.{role}.kv_blocks")):
            yield Problem(f"memory.{role}.kv_blocks", None, "is missing")


def without_requests(summary: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    """Yield that nothing can be told of a whole summary, read from this path, to whose run nothing came."""
    if summary["accounting"]["injected"] == 0:
        later = summary["accounting"]["not_sent"]
        when = f": all {later:,} were to come after the horizon" if later else ""
        yield Problem(str(path), None, f"no request arrived in this run{when}")


def table_problems(name: str, table: pd.DataFrame) -> Iterator[Problem]:
    """Yield what is wrong with the columns of the table ``requests`` or ``steps``."""
    for field in _SCHEMAS[name]:
        if field.name not in table:
            yield Problem(field.name, None, "there is no such column")
            continue
        column = table[field.name]
        if not pa.types.is_dictionary(field.type) and not pd.api.types.is_numeric_dtype(column.dtype):
            if not column.isna().all():
                yield Problem(field.name, None, "must be a column of numbers")
        elif field.name in _NEVER_NULL[name] and column.isna().any():
            yield Problem(field.name, None, f"has no value in {int(column.isna().sum()):,} rows")


def _at(values: Any, path: str) -> Any:
    """Return what lies at a place, None where there is none."""
    for name in path.split("."):
        values = values.get(name) if isinstance(values, Mapping) else None
    return values


def _is_length(value: Any) -> bool:
    return isinstance(value, (int, float)) and isfinite(value) and value >= 0
