"""Columns of tables of measurements: what they are called, and the unit that their names end with."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

#: Seconds of each unit that a name can end with.
UNITS = {"s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}

_PARENTHESES = re.compile(r"\s*[(\[]\s*([a-z/]+)\s*[)\]]\s*$")
_GAPS = re.compile(r"[^a-z0-9]+")

#: Columns of a table of requests, and how they are spelled, the unit left out.
REQUESTS: Mapping[str, Collection[str]] = {
    "arrival": (
        *("arrival", "arrival_time", "arrival_timestamp", "arrived_at", "sent", "send_time", "sent_at"),
        *("start", "start_time", "request_start", "request_start_time", "launch_time", "timestamp"),
    ),
    "input": (
        *("input", "inputs", "input_tokens", "input_toks", "input_len", "input_length", "isl"),
        *("prompt_tokens", "prompt_len", "prompt_length", "num_prompt_tokens", "num_prefill_tokens"),
        *("input_sequence_length", "context_tokens", "request_tokens"),
    ),
    "output": (
        *("output", "outputs", "output_tokens", "output_toks", "output_len", "output_length", "osl"),
        *("generation_tokens", "generated_tokens", "completion_tokens", "num_decode_tokens"),
        *("output_sequence_length", "num_generation_tokens", "response_tokens"),
    ),
    "ttft": ("ttft", "time_to_first_token", "first_token_latency"),
    "e2e": ("e2e", "e2el", "e2e_latency", "latency", "request_latency", "end_to_end_latency", "total_time"),
    "tpot": ("tpot", "time_per_output_token"),
    "generation": ("generation_time", "decode_time"),
    "queued": ("queued", "queued_ts", "queued_time"),
    "first_token": ("first_token", "first_token_ts", "first_token_time"),
    "last_token": ("last_token", "last_token_ts", "last_token_time", "end_time", "finished", "finish_time"),
    "error": ("error", "errors"),
    "success": ("success", "successful", "succeeded"),
    "status": ("status", "state"),
}

#: Columns that say what was run at a closed-loop point, and how they are spelled.
POINTS: Mapping[str, Collection[str]] = {
    "concurrency": ("concurrency", "conc", "max_concurrency", "num_concurrent_requests", "users"),
    "isl": ("isl", "input", "input_tokens", "input_len", "input_length", "prompt_tokens", "random_input_len"),
    "osl": (
        *("osl", "output", "output_tokens", "output_len", "output_length", "generation_tokens"),
        "random_output_len",
    ),
    "tp": ("tp", "tp_size", "tensor_parallel", "tensor_parallel_size", "prefill_or_agg_tp"),
}


class Column(NamedTuple):
    """A column of a table, and the seconds of its unit; None where its name has none."""

    name: str
    unit_s: float | None

    @property
    def seconds(self) -> float:
        """Return the seconds of its unit; without one, it is in seconds."""
        return 1.0 if self.unit_s is None else self.unit_s


def plain(name: str) -> tuple[str, float | None]:
    """Return a name in snake case without its unit, and the unit's seconds: ``TTFT (ms)``, ``ttft_ms``."""
    text, unit = name.strip().lower(), ""
    if found := _PARENTHESES.search(text):
        text, unit = text[: found.start()], found[1]
    text = _GAPS.sub("_", text).strip("_")
    if unit not in UNITS and text.rpartition("_")[2] in UNITS and "_" in text:
        text, _, unit = text.rpartition("_")
    return text, UNITS.get(unit)


def named(header: Iterable[str], spellings: Mapping[str, Collection[str]]) -> dict[str, Column]:
    """Return the columns of a table by what they are; of two spellings of one thing, the one named first."""
    found: dict[str, list[tuple[int, Column]]] = {}
    for name in header:
        text, unit_s = plain(name)
        for meaning, known in spellings.items():
            if text in known:
                found.setdefault(meaning, []).append((list(known).index(text), Column(name, unit_s)))
    return {meaning: min(columns)[1] for meaning, columns in found.items()}
