"""AIPerf's records, one request a line (``profile_export.jsonl``; AIPerf, working-with-profile-exports.md).

A line has ``metadata`` (request_start_ns, benchmark_phase, was_cancelled), ``metrics``, each with its value
and unit, and ``error``. AIPerf's inter_token_latency is vLLM's TPOT; its inter_chunk_latency are the gaps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from servesim.validate.measured import Floats, Measured, in_order
from servesim.validate.readers.content import Content, Row
from servesim.validate.readers.problems import Findings, refuse
from servesim.validate.readers.spelling import UNITS

_PROFILING = "profiling"
#: Lengths of a request, and how AIPerf has called them.
_LENGTHS = {
    "input": ("input_sequence_length", "input_token_count"),
    "output": ("output_sequence_length", "output_token_count"),
}


def is_records(content: Content) -> bool:
    """Tell whether JSON lines are AIPerf's records."""
    return bool(content.rows) and {"metadata", "metrics"} <= set(content.header)


def read_records(content: Content) -> Measured:
    """Return the run of AIPerf's records; requests of a warm-up are left out.

    Raises:
        ConfigError: listing the lines that are wrong.
    """
    measured = [
        row for row in content.rows if _metadata(row).get("benchmark_phase", _PROFILING) == _PROFILING
    ]
    good = [row for row in measured if not row.cells.get("error") and not _metadata(row).get("was_cancelled")]
    if not good:
        refuse(content.source, f"has no request that succeeded, of {len(content.rows):,}")
    findings = Findings(content.source)
    columns = _columns(good, findings)
    sent_s = findings.times(
        [_metadata(row).get("request_start_ns") for row in good],
        lambda at: f"line {good[at].line}, metadata.request_start_ns",
        1e-9,
    )
    itl_s = _gaps(good, findings)
    findings.check()
    warm_up = len(content.rows) - len(measured)
    return Measured(
        content.source,
        "AIPerf records",
        **in_order(sent_s, **columns),
        itl_s=itl_s if len(itl_s) else None,
        failed=len(measured) - len(good),
        notes=(f"{warm_up:,} requests of the warm-up left out",) if warm_up else (),
    )


def _columns(rows: Sequence[Row], findings: Findings) -> dict[str, Any]:
    tokens = {}
    for name, spellings in _LENGTHS.items():
        spelt = next((each for each in spellings if each in _metrics(rows[0])), spellings[0])
        values = [_value(row, spelt)[0] for row in rows]
        tokens[f"{name}_tokens"] = findings.tokens(values, _place(rows, spelt))
    return {
        **tokens,
        "ttft_s": _times(rows, "time_to_first_token", findings),
        "e2e_s": _times(rows, "request_latency", findings),
    }


def _times(rows: Sequence[Row], name: str, findings: Findings) -> Floats:
    return np.concatenate([_numbers([_value(row, name)[0]], row, name, findings) for row in rows])


def _gaps(rows: Sequence[Row], findings: Findings) -> Floats:
    name = "inter_chunk_latency"
    lists = [(row, values) for row in rows if isinstance(values := _value(row, name)[0], list)]
    gaps = np.concatenate([np.empty(0), *(_numbers(values, row, name, findings) for row, values in lists)])
    known: Floats = gaps[~np.isnan(gaps)]
    return known


def _numbers(values: Sequence[Any], row: Row, name: str, findings: Findings) -> Floats:
    """Return values of one metric of a request in seconds; without a unit they are in milliseconds."""
    unit_s = UNITS.get(str(_value(row, name)[1]).lower(), 1e-3)
    return findings.numbers(values, lambda _: f"line {row.line}, {name}", unit_s)


def _place(rows: Sequence[Row], name: str) -> Callable[[int], str]:
    return lambda at: f"line {rows[at].line}, {name}"


def _metadata(row: Row) -> dict[str, Any]:
    said = row.cells.get("metadata")
    return said if isinstance(said, dict) else {}


def _metrics(row: Row) -> dict[str, Any]:
    said = row.cells.get("metrics")
    return said if isinstance(said, dict) else {}


def _value(row: Row, name: str) -> tuple[Any, Any]:
    """Return a metric's value and unit; older records have the bare value."""
    said = _metrics(row).get(name)
    return (said.get("value"), said.get("unit")) if isinstance(said, dict) else (said, None)
