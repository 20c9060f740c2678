"""The JSON of ``vllm bench serve`` (vLLM, vllm/benchmarks/serve.py).

With ``--save-detailed`` it has a row per request: start_times, input_lens, output_lens, ttfts, itls, errors
and in newer versions latencies and queue_times, all in seconds; without, only means and percentiles. Where
its error is not empty a request has failed; older versions leave an output length of 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf, isinf
from typing import Any, TypeGuard

import numpy as np

from servesim.validate.measured import METRICS, STATISTICS, THROUGHPUT, Floats, Integers, Measured, in_order
from servesim.validate.readers.hardware import hardware
from servesim.validate.readers.made import arrivals, equal_lengths
from servesim.validate.readers.problems import Findings, as_number, refuse

#: Lists of a detailed result, one entry per request.
_LISTS = ("input_lens", "output_lens", "ttfts", "itls")
_OPTIONAL = ("start_times", "latencies", "queue_times", "errors")
_NAMES = {"mean": "mean", "p50": "median", "p90": "p90", "p99": "p99"}


def is_result(value: object) -> TypeGuard[dict[str, Any]]:
    """Tell whether a JSON value is a result of this benchmark."""
    return isinstance(value, dict) and (
        "ttfts" in value or {"request_throughput", "output_throughput"} <= value.keys()
    )


def read_result(result: Mapping[str, Any], source: str) -> Measured:
    """Return the run of a result.

    Raises:
        ConfigError: listing the entries that are wrong.
    """
    findings = Findings(source)
    about = _about(result, findings)
    if all(isinstance(result.get(name), list) for name in _LISTS):
        return _detailed(result, source, about, findings)
    findings.check()
    return _summary(result, source, about)


def _about(result: Mapping[str, Any], findings: Findings) -> dict[str, Any]:
    """Return what the result says of the run as a whole."""
    said: dict[str, float | None] = {}
    for name in ("request_rate", "max_concurrency", "duration", "failed"):
        number = as_number(result.get(name))
        if number is not None and not number >= 0:
            findings.add(name, result[name], "must be a number, at least 0")
        said[name] = number
    users = said["max_concurrency"]
    return {
        "request_rate": said["request_rate"],
        "max_concurrency": None if not users else int(users),
        "duration_s": said["duration"],
        "failed": int(said["failed"] or 0),
        "model": result.get("model_id"),
        **hardware(result),
    }


def _detailed(result: Mapping[str, Any], source: str, about: dict[str, Any], findings: Findings) -> Measured:
    lists = {name: result[name] for name in (*_LISTS, *_OPTIONAL) if isinstance(result.get(name), list)}
    sizes = {name: len(entries) for name, entries in lists.items() if name != "errors" or entries}
    if len(set(sizes.values())) != 1:
        said = ", ".join(f"{name} {size:,}" for name, size in sizes.items())
        refuse(source, f"its lists must have as many entries, one per request: {said}")
    good = _good(lists)
    if not len(good):
        refuse(source, f"has no request that succeeded, of {sizes['ttfts']:,}")
    columns, itls = _columns(lists, good, findings)
    sent_s, how = _sent_s(lists, good, about, result, findings)
    findings.check()
    if not np.nanmax(columns["ttft_s"], initial=0.0) > 0:
        columns["ttft_s"][:] = np.nan  # an endpoint that does not stream
    about["failed"] = sizes["ttfts"] - len(good)
    pooled = np.concatenate([np.empty(0), *itls])
    return Measured(
        source,
        "vllm bench serve",
        **in_order(sent_s, **columns),
        itl_s=pooled if len(pooled) else None,
        drawn="start_times" not in lists,
        notes=tuple(how),
        **about,
    )


def _good(lists: Mapping[str, list[Any]]) -> Integers:
    """Return the numbers of the requests that succeeded."""
    errors = lists.get("errors") or [""] * len(lists["ttfts"])
    outputs = lists["output_lens"]
    return np.array([n for n, error in enumerate(errors) if not error and outputs[n] != 0], dtype=np.int64)


def _columns(
    lists: Mapping[str, list[Any]], good: Integers, findings: Findings
) -> tuple[dict[str, Any], list[Floats]]:
    """Return the columns of the requests that succeeded, and the gaps between the tokens of each."""

    def numbers(name: str) -> Floats:
        return findings.numbers([lists[name][n] for n in good], lambda at: f"{name}[{good[at]}]")

    def tokens(name: str) -> Integers:
        return findings.tokens([lists[name][n] for n in good], lambda at: f"{name}[{good[at]}]")

    gaps = [_gaps(lists["itls"][n], f"itls[{n}]", findings) for n in good]
    ttft_s = numbers("ttfts")
    e2e_s = (
        numbers("latencies")
        if "latencies" in lists
        else ttft_s + np.array([float(each.sum()) for each in gaps])
    )
    return {
        "input_tokens": tokens("input_lens"),
        "output_tokens": tokens("output_lens"),
        "ttft_s": ttft_s,
        "e2e_s": e2e_s,
        "client_queue_s": numbers("queue_times") if "queue_times" in lists else None,
    }, gaps


def _gaps(values: Any, place: str, findings: Findings) -> Floats:
    if not isinstance(values, list):
        findings.add(place, values, "must be a list of the gaps between tokens (s)")
        return np.empty(0)
    gaps = findings.numbers(values, lambda at: f"{place}[{at}]")
    return gaps[~np.isnan(gaps)]


def _sent_s(
    lists: Mapping[str, list[Any]],
    good: Integers,
    about: Mapping[str, Any],
    result: Mapping[str, Any],
    findings: Findings,
) -> tuple[Floats, list[str]]:
    """Return when the requests were sent, and what to note of it."""
    if "start_times" in lists:
        return findings.times(
            [lists["start_times"][n] for n in good], lambda at: f"start_times[{good[at]}]"
        ), []
    return arrivals(len(lists["ttfts"]), about["request_rate"], _burstiness(result), findings.source)[good], [
        "the file has no start_times: sent as its request rate says, not as it happened"
    ]


def _burstiness(result: Mapping[str, Any]) -> float:
    return as_number(result.get("burstiness")) or 1.0


def _summary(result: Mapping[str, Any], source: str, about: dict[str, Any]) -> Measured:
    """Return a run of which only figures are known: as many requests of its mean lengths."""
    completed, total_input, total_output = (
        as_number(result.get(name)) for name in ("completed", "total_input_tokens", "total_output_tokens")
    )
    if not (completed and total_input and total_output):
        refuse(source, "needs completed, total_input_tokens and total_output_tokens to be replayed")
    count = int(completed)
    inputs, outputs = equal_lengths(count, total_input), equal_lengths(count, total_output)
    if about["request_rate"] is None and about["max_concurrency"] is not None:
        about["request_rate"] = inf
    unknown = np.full(count, np.nan)
    return Measured(
        source,
        "vllm bench serve, summary",
        arrivals(count, about["request_rate"], _burstiness(result), source),
        inputs,
        outputs,
        unknown,
        unknown,
        notes=tuple(_on_a_summary(about["request_rate"])),
        drawn=True,
        stated=_stated(result),
        **about,
    )


def _on_a_summary(rate: float) -> Iterator[str]:
    yield "the file has no requests (--save-detailed keeps them): replayed with the mean lengths of all"
    if not isinf(rate):
        yield "times of sending drawn at its request rate"


def _stated(result: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Return the figures of a summary, latencies in seconds."""
    found: dict[str, dict[str, float]] = {}
    for metric in METRICS:
        key = "e2el" if metric == "e2e" else metric
        for statistic in STATISTICS:
            number = as_number(result.get(f"{_NAMES[statistic]}_{key}_ms"))
            if number is None and statistic == "p50":
                number = as_number(result.get(f"p50_{key}_ms"))
            if number:  # an empty list has a mean of 0
                found.setdefault(metric, {})[statistic] = number / 1e3
    rates = {"requests": "request_throughput", "output_tokens": "output_throughput"}
    known = {name: number for name, key in rates.items() if (number := as_number(result.get(key)))}
    return found | ({THROUGHPUT: known} if known else {})
