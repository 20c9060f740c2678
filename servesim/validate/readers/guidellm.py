"""GuideLLM's report (``benchmarks.json``): a list of benchmarks, each with its requests by how they ended.

Of a request: prompt_tokens, output_tokens, request_latency (s), time_to_first_token_ms, and when it was sent,
whose place has moved between versions (GuideLLM, src/guidellm/schemas/request_stats.py and
benchmark/objects.py): request_start_time, start_time, or request_start of its timings. GuideLLM's own TPOT
counts the first token; here TPOT follows from TTFT and latency, as vLLM has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, TypeGuard

import numpy as np

from servesim.validate.measured import Measured, in_order
from servesim.validate.readers.problems import Findings, as_number, refuse

#: Where the strategy of the sending stands: 0.4 and later, 0.3, and a version between.
_STRATEGIES = (("config", "strategy"), ("args", "strategy"), ("scheduler", "strategy"))
#: Where the moment of sending stands.
_STARTS = (
    ("request_start_time",),
    ("info", "timings", "request_start"),
    ("scheduler_info", "request_timings", "request_start"),
    ("start_time",),
)
_USERS = ("max_concurrency", "streams", "concurrency")
_LOST = ("errored", "incomplete")


def is_report(value: object) -> TypeGuard[dict[str, Any]]:
    """Tell whether a JSON value is such a report."""
    return isinstance(value, dict) and isinstance(value.get("benchmarks"), list)


def read_report(report: Mapping[str, Any], source: str) -> list[Measured]:
    """Return a run for each benchmark of a report.

    Raises:
        ConfigError: listing the requests that are wrong.
    """
    benchmarks = report["benchmarks"]
    if not benchmarks:
        refuse(source, "has no benchmarks")
    names = [source if len(benchmarks) == 1 else f"{source}[{n}]" for n in range(len(benchmarks))]
    return [_benchmark(each, name) for each, name in zip(benchmarks, names, strict=True)]


def _benchmark(benchmark: Any, source: str) -> Measured:
    requests = _at(benchmark, "requests")
    done = requests.get("successful") if isinstance(requests, Mapping) else None
    if not isinstance(done, list) or not done:
        refuse(source, "has no requests.successful: nothing to replay")
    findings = Findings(source)
    columns = _columns(done, findings)
    findings.check()
    lost = {name: requests.get(name) for name in _LOST}
    strategy: Any = next((said for place in _STRATEGIES if (said := _at(benchmark, *place))), {})
    users = next((number for name in _USERS if (number := as_number(_at(strategy, name)))), None)
    rate = as_number(_at(strategy, "rate"))
    return Measured(
        source,
        "GuideLLM",
        **columns,
        max_concurrency=int(users) if users and not rate else None,
        request_rate=rate if rate else inf if users else None,
        duration_s=as_number(_at(benchmark, "duration")),
        failed=sum(len(each) for each in lost.values() if isinstance(each, list)),
    )


def _columns(requests: Sequence[Any], findings: Findings) -> dict[str, Any]:
    def place(name: str) -> Any:
        return lambda at: f"requests.successful[{at}].{name}"

    def values(name: str) -> list[Any]:
        return [_at(each, name) for each in requests]

    starts = [next((at for way in _STARTS if (at := _at(each, *way)) is not None), None) for each in requests]
    return in_order(
        findings.times(starts, place("request_start_time")),
        input_tokens=findings.tokens(values("prompt_tokens"), place("prompt_tokens")),
        output_tokens=findings.tokens(values("output_tokens"), place("output_tokens")),
        ttft_s=_known(
            findings.numbers(values("time_to_first_token_ms"), place("time_to_first_token_ms"), 1e-3)
        ),
        e2e_s=findings.numbers(values("request_latency"), place("request_latency")),
    )


def _known(ttft_s: Any) -> Any:
    """Return the times, NaN for 0: an answer that was not streamed has no first token."""
    return np.where(ttft_s > 0, ttft_s, np.nan)


def _at(value: Any, *path: str) -> Any:
    """Return what stands at a path of keys; None where it leads nowhere."""
    for key in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value
