"""The tables of groups of a run's requests: first and later turns, classes, and tenants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from servesim.report.content import Table
from servesim.screen.figures import number
from servesim.screen.groups import class_rows, evenness, service_rows, tenant_rows


def groups(summary: Mapping[str, Any]) -> Iterator[Table]:
    """Yield a table for each way in which the requests of a run divide."""
    if section := summary.get("fairness"):
        meaning = "Latencies of those that completed. Good: within all limits, of those sent."
        yield Table("Tenants", *tenant_rows(section), meaning)
        yield Table("Service of tenants", *service_rows(section), f"Whole run: {evenness(section)}.")
    if section := summary.get("classes"):
        meaning = "By priority: of two, the smaller is the better. Latencies of those that completed. "
        meaning += "Good: within all limits, of those sent."
        yield Table("Classes", *class_rows(section), meaning)
    if section := summary.get("sessions"):
        yield _turns(section)


def _turns(sessions: Mapping[str, Any]) -> Table:
    """Return what the later turns of sessions found in the cache, beside the first ones."""
    rows = []
    for title, name in (("first", "first_turns"), ("later", "later_turns")):
        said = sessions[name]
        means = (number(said[key]) for key in ("input_tokens", "cached_tokens"))
        ends = (f"{said[key]:,}" for key in ("requests", "completed"))
        rows.append((title, *ends, *means, number(said["ttft_s"], 1e3)))
    headings = ("", "sent", "completed", "tokens in", "found in the cache", "TTFT mean (ms)")
    return Table("Turns of sessions", headings, rows, "Means per request, TTFT of those that completed.")
