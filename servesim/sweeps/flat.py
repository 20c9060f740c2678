"""Summaries as rows: nested names joined by dots, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Figure = str | int | float | bool | None

#: Parts of a summary that differ from run to run of the same scenario.
NOT_REPEATABLE = ("simulator",)
#: Parts of a summary that are words about figures.
_WORDS = ("metrics.definitions",)


def flatten(summary: Mapping[str, Any]) -> dict[str, Figure]:
    """Return a summary as one row ("latency.ttft_s.p99"): lists as JSON text, without ``simulator``.

    Nor with the definitions of metrics, which are words.
    """
    row: dict[str, Figure] = {}
    for name, value in summary.items():
        if name not in NOT_REPEATABLE:
            _fill(row, name, value)
    return row


def unflatten(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the nested summary of a row, null figures included; names without a value are null, too."""
    nested: dict[str, Any] = {}
    for name, value in row.items():
        *path, last = name.split(".")
        place = nested
        for part in path:
            inner = place.get(part)
            if not isinstance(inner, dict):
                inner = place[part] = {}
            place = inner
        if not isinstance(place.get(last), dict):
            place[last] = _read(value)
    return nested


def _fill(row: dict[str, Figure], path: str, value: Any) -> None:
    if path in _WORDS:
        return
    if isinstance(value, dict):  # a summary is of dicts, lists and plain values
        for name, inner in value.items():
            _fill(row, f"{path}.{name}", inner)
    else:
        row[path] = json.dumps(value) if isinstance(value, list) else value


def _read(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) and value[:1] == "[" else value
