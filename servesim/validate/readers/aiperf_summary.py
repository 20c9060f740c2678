"""AIPerf's statistics of a whole run: ``profile_export_aiperf.json`` and ``.csv``.

The JSON has for each metric its unit and avg, p50, p90, p99 ...; the CSV the same as a report in sections,
with names such as ``Time to First Token (ms)``. AIPerf's inter_token_latency is vLLM's TPOT, its
inter_chunk_latency the gaps between tokens (chunks), and its percentiles are numpy's.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any, TypeGuard

import numpy as np

from servesim.validate.measured import STATISTICS, THROUGHPUT, Measured
from servesim.validate.readers.content import Content
from servesim.validate.readers.made import arrivals, equal_lengths
from servesim.validate.readers.problems import as_number, refuse
from servesim.validate.readers.spelling import UNITS

_LATENCIES = {
    "ttft": "time_to_first_token",
    "tpot": "inter_token_latency",
    "itl": "inter_chunk_latency",
    "e2e": "request_latency",
}
_RATES = {"requests": "request_throughput", "output_tokens": "output_token_throughput"}
_AVERAGE = "avg"

_NO_REQUESTS = (
    "the file has no requests (profile_export.jsonl has them): replayed with the mean lengths of all"
)
_NO_SENDING = "the file does not say how requests were sent: times drawn at its request throughput"

#: Of each metric its unit and its statistics.
Metrics = Mapping[str, Mapping[str, Any]]


def is_summary(value: object) -> TypeGuard[dict[str, Any]]:
    """Tell whether a JSON value is such a summary."""
    if not isinstance(value, dict):
        return False
    latency = value.get("request_latency")
    return isinstance(latency, dict) and _AVERAGE in latency


def read_summary(value: Mapping[str, Any], source: str) -> Measured:
    """Return the run of a JSON summary: as many requests of its mean lengths.

    Raises:
        ConfigError: it has too little to be replayed.
    """
    metrics = {name: said for name, said in value.items() if isinstance(said, Mapping)}
    config = value.get("input_config")
    config = config if isinstance(config, Mapping) else {}
    sending, endpoint = config.get("loadgen"), config.get("endpoint")
    models = endpoint.get("model_names") if isinstance(endpoint, Mapping) else None
    model = str(models[0]) if isinstance(models, list) and models else None
    return _run(metrics, sending if isinstance(sending, Mapping) else {}, model, source)


def is_report(content: Content) -> bool:
    """Tell whether a CSV is such a report."""
    return bool(content.header) and content.header[0] == "Metric"


def read_report(content: Content) -> Measured:
    """Return the run of a CSV report; it does not say how the requests were sent, but for their rate."""
    metrics: dict[str, dict[str, Any]] = {}
    header: list[str] = []
    for row in content.rows:
        cells = [str(cell).strip() for cell in row.cells.values()]
        if cells[0] == "Metric":
            header = [_AVERAGE if name == "Value" else name for name in cells]
        elif header and len(cells) == len(header):
            name, _, unit = cells[0].partition(" (")
            key = name.lower().replace(" ", "_")
            metrics[key] = {"unit": unit.rstrip(")"), **dict(zip(header[1:], cells[1:], strict=True))}
        else:
            header = []  # a section of another kind: telemetry of GPUs
    return _run(metrics, {}, None, content.source)


def _run(metrics: Metrics, sending: Mapping[str, Any], model: str | None, source: str) -> Measured:
    figures = {name: _figure(metrics, name) for name in ("request_count", *_RATES.values())}
    count = int(figures["request_count"] or 0)
    inputs, outputs = (_figure(metrics, f"{way}_sequence_length") for way in ("input", "output"))
    if not (count and inputs and outputs):
        refuse(source, "needs request_count, input_sequence_length and output_sequence_length to be replayed")
    users, rate = as_number(sending.get("concurrency")), as_number(sending.get("request_rate"))
    notes = (_NO_REQUESTS, *(() if rate or users else (_NO_SENDING,)))
    rate = rate or (None if users else figures["request_throughput"]) or inf
    unknown = np.full(count, np.nan)
    return Measured(
        source,
        "AIPerf summary",
        arrivals(count, rate, 1.0, source),
        equal_lengths(count, inputs * count),
        equal_lengths(count, outputs * count),
        unknown,
        unknown,
        request_rate=rate,
        max_concurrency=int(users) if users else None,
        model=model,
        duration_s=_figure(metrics, "benchmark_duration"),
        failed=int(_figure(metrics, "error_request_count") or 0),
        drawn=True,
        notes=notes,
        stated=_stated(metrics),
    )


def _stated(metrics: Metrics) -> dict[str, dict[str, float]]:
    """Return the figures, latencies in seconds."""
    found: dict[str, dict[str, float]] = {}
    for metric, name in _LATENCIES.items():
        unit_s = UNITS.get(str(metrics.get(name, {}).get("unit", "ms")).lower(), 1e-3)
        for statistic in STATISTICS:
            number = _figure(metrics, name, _AVERAGE if statistic == "mean" else statistic)
            if number is not None:
                found.setdefault(metric, {})[statistic] = number * unit_s
    rates = {rate: number for rate, name in _RATES.items() if (number := _figure(metrics, name)) is not None}
    return found | ({THROUGHPUT: rates} if rates else {})


def _figure(metrics: Metrics, name: str, statistic: str = _AVERAGE) -> float | None:
    """Return a statistic of a metric; None where it is not there or no number."""
    number = as_number(metrics.get(name, {}).get(statistic))
    return None if number is None or number != number else number
