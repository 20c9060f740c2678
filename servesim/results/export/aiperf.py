"""The result files of AIPerf: ``profile_export_aiperf.json`` and ``.csv``, and ``profile_export.jsonl``.

Sources: AIPerf's pages on its JSON export schema (1.1 has ``count`` and ``sum``) and on profile exports, and
its CSV exporter. Times are on the clock of the run; there are no dates, so that a file depends on its run
alone.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from math import isfinite, isnan
from typing import Any

import numpy as np

from servesim.engine.log import COMPLETED, REASONS, STATUSES
from servesim.results.dialects.aiperf import AIPERF, RECORDS, TOTALS
from servesim.results.dialects.dialect import Value
from servesim.results.dialects.sample import Sample
from servesim.results.dialects.statistics import AIPERF_PERCENTS
from servesim.results.export.about import About
from servesim.results.stored import Tables

SCHEMA_VERSION = "1.1"
#: The columns of the table of samples.
STATISTICS = ("avg", "min", "max", *(f"p{percent}" for percent in AIPERF_PERCENTS), "std")
_NS = 1e9
_COLUMNS = ("request_id", "sent_s", "input_tokens", "status", "reason", "session", "turn")


def summary_json(sample: Sample, about: About, tables: Tables) -> dict[str, Any]:
    """Return ``profile_export_aiperf.json``: a block per metric; a metric that has no value is left out."""
    values = dict(_values(sample))
    blocks = {
        metric.name: {"unit": metric.unit, **_block(values[metric.name])}
        for metric in (*RECORDS, *TOTALS)
        if metric.name in values
    }
    load = {
        "concurrency": about.max_concurrency,
        "request_rate": about.request_rate if isfinite(about.request_rate) else None,
        "request_count": sample.completed + sample.failed,
    }
    return {
        "schema_version": SCHEMA_VERSION,
        **blocks,
        "input_config": {
            "endpoint": {"model_names": [about.model], "streaming": True},
            "loadgen": {key: value for key, value in load.items() if value is not None},
        },
        "was_cancelled": False,
        "error_summary": _error_summary(tables),
    }


def summary_csv(sample: Sample) -> str:
    """Return ``profile_export_aiperf.csv``: a table of samples, an empty line, a table of single figures.

    As AIPerf's, it is sorted by tag and has two decimals.
    """
    text = io.StringIO()
    writer = csv.writer(text)
    values = dict(_values(sample))
    writer.writerow(["Metric", *STATISTICS])
    for metric in sorted(RECORDS, key=lambda metric: metric.name):
        if isinstance(value := values.get(metric.name), Mapping):
            figures = (_decimals(value[name]) for name in STATISTICS)
            writer.writerow([_titled(metric.header, metric.unit), *figures])
    writer.writerow([])
    writer.writerow(["Metric", "Value"])
    for metric in sorted(TOTALS, key=lambda metric: metric.name):
        if metric.name in values:
            writer.writerow([_titled(metric.header, metric.unit), _decimals(values[metric.name])])
    return text.getvalue()


def records(sample: Sample, tables: Tables) -> Iterator[dict[str, Any]]:
    """Yield the lines of ``profile_export.jsonl``: one per request, in order of sending."""
    table = tables.request_table
    identity, sent_s, inputs, status, reason, session, turn = (table.column(name) for name in _COLUMNS)
    completed = _completed_records(sample)
    for row in np.argsort(identity, kind="stable").tolist():
        start_s = float(sent_s[row])
        talk = None if isnan(session[row]) else int(session[row])
        place = partial(_metadata, int(identity[row]), talk, int(turn[row]), start_s)
        if status[row] == COMPLETED:
            end_s, metrics = next(completed)
            yield {"metadata": place(end_s), "metrics": metrics, "error": None}
        else:
            told = {"error_isl": {"value": int(inputs[row]), "unit": "tokens"}}
            error = _error(int(status[row]), int(reason[row]))
            yield {"metadata": place(start_s), "metrics": told, "error": error}


def _values(sample: Sample) -> Iterator[tuple[str, Value]]:
    """Yield the metrics that have a value."""
    for metric in (*RECORDS, *TOTALS):
        value = AIPERF.value(metric, sample)
        empty = not value["count"] if isinstance(value, Mapping) else value is None or not isfinite(value)
        if not empty:
            yield metric.name, value


def _block(value: Value) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {"avg": value}


def _completed_records(sample: Sample) -> Iterator[tuple[float, dict[str, Any]]]:
    """Yield when each completed request ended (s), and its metrics: pooled ones are the list of its gaps."""
    ends_s = (sample.sent_s + sample.e2e_s).tolist()
    values = {metric: metric.of(sample) for metric in RECORDS}
    for index, gaps_s in enumerate(sample.times.inter_token_s()):
        metrics = {}
        for metric, column in values.items():
            value = gaps_s if callable(column) else column[index : index + 1]
            if len(value) and not isnan(value[0]):
                told = (value * metric.scale).tolist()
                metrics[metric.name] = {"value": told if callable(column) else told[0], "unit": metric.unit}
        yield ends_s[index], metrics


def _metadata(number: int, session: int | None, turn: int, start_s: float, end_s: float) -> dict[str, Any]:
    """Tell which request it was and when; one of no session is a conversation of its own, of one turn."""
    conversation, turn = (number, 0) if session is None else (session, turn)
    return {
        "session_num": number,
        "x_request_id": str(number),
        "x_correlation_id": str(conversation),
        "conversation_id": str(conversation),
        "turn_index": turn,
        "request_start_ns": round(start_s * _NS),
        "request_ack_ns": None,
        "request_end_ns": round(end_s * _NS),
        "worker_id": "servesim",
        "record_processor_id": "servesim",
        "benchmark_phase": "profiling",
        "was_cancelled": False,
        "cancellation_time_ns": None,
    }


def _error(status: int, reason: int) -> dict[str, Any]:
    return {"code": None, "type": STATUSES[status], "message": REASONS[reason] or STATUSES[status]}


def _error_summary(tables: Tables) -> list[dict[str, Any]]:
    """Return how many requests did not complete, by what became of them."""
    status, reason = (tables.request_table.column(name).tolist() for name in ("status", "reason"))
    ends = Counter(zip(status, reason, strict=True))
    return [
        {"error_details": _error(*end), "count": count}
        for end, count in sorted(ends.items())
        if end[0] != COMPLETED
    ]


def _titled(header: str, unit: str) -> str:
    return header if unit == "requests" else f"{header} ({unit})"


def _decimals(value: Any) -> str:
    return str(value) if isinstance(value, int) else f"{value:.2f}"
