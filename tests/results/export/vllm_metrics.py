"""The summary of ``vllm bench serve`` from per-request arrays, written the way vLLM computes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def summary_of(detailed: Mapping[str, Any], goodput_ms: Mapping[str, float]) -> dict[str, Any]:
    """Return the figures that vLLM derives from its own lists; requests with an error have failed."""
    names = ("input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times", "errors")
    rows = [row for row in zip(*(detailed[name] for name in names), strict=True) if not row[-1]]
    inputs, outputs, ttfts, itls, latencies, starts, _ = zip(*rows, strict=True) if rows else [()] * 7
    all_tpots = [
        (latency - ttft) / (tokens - 1) if tokens > 1 else 0.0
        for latency, ttft, tokens in zip(latencies, ttfts, outputs, strict=True)
    ]
    limits = {"ttft": ttfts, "tpot": all_tpots, "e2el": latencies}
    good = sum(
        all(limits[name][index] <= limit / 1e3 for name, limit in goodput_ms.items())
        for index in range(len(rows))
    )
    duration = detailed["duration"]
    found = {
        "completed": len(rows),
        "failed": len(detailed["errors"]) - len(rows),
        "total_input_tokens": sum(inputs),
        "total_output_tokens": sum(outputs),
        "request_throughput": len(rows) / duration,
        "request_goodput": good / duration if goodput_ms else None,
        "output_throughput": sum(outputs) / duration,
        "total_token_throughput": (sum(inputs) + sum(outputs)) / duration,
        "max_output_tokens_per_s": _peak_tokens(starts, ttfts, itls),
        "max_concurrent_requests": _peak_requests(starts, latencies),
    }
    tpots = [tpot for tpot, tokens in zip(all_tpots, outputs, strict=True) if tokens > 1]
    pooled = [gap for gaps in itls for gap in gaps]
    for name, sample in (("ttft", ttfts), ("tpot", tpots), ("itl", pooled), ("e2el", latencies)):
        values = np.array(sample or [0.0])
        found |= {
            f"mean_{name}_ms": np.mean(values) * 1000,
            f"median_{name}_ms": np.median(values) * 1000,
            f"std_{name}_ms": np.std(values) * 1000,
            f"p99_{name}_ms": np.percentile(values, 99) * 1000,
        }
    return found


def _peak_tokens(starts: Any, ttfts: Any, itls: Any) -> int:
    counts: dict[int, int] = {}
    for start, ttft, gaps in zip(starts, ttfts, itls, strict=True):
        for moment in start + ttft + np.concatenate([[0.0], np.cumsum(gaps)]):
            second = int(moment - min(starts))
            counts[second] = counts.get(second, 0) + 1
    return max(counts.values(), default=0)


def _peak_requests(starts: Any, latencies: Any) -> int:
    ends = [start + latency for start, latency in zip(starts, latencies, strict=True)]
    changes = sorted([(start, 1) for start in starts] + [(end, -1) for end in ends])
    return max(np.cumsum([change for _, change in changes]).tolist(), default=0)
