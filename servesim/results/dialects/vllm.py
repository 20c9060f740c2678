"""The metrics of ``vllm bench serve`` (``vllm/benchmarks/serve.py``)."""

from __future__ import annotations

from servesim.results.dialects.dialect import Dialect, Metric
from servesim.results.dialects.peaks import max_concurrent_requests, max_output_tokens_per_s
from servesim.results.dialects.sample import Sample
from servesim.results.dialects.statistics import bench
from servesim.results.rates import ratio


def request_goodput(sample: Sample) -> float | None:
    """Return good requests per second; one of a single token counts with a TPOT of 0."""
    good = sample.good(tpot_of_one_token_s=0.0)
    return None if good is None else ratio(good, sample.duration_s)


def output_throughput(sample: Sample) -> float:
    """Return the output tokens of completed requests per second of the run."""
    return ratio(sample.total_output_tokens, sample.duration_s)


def total_token_throughput(sample: Sample) -> float:
    """Return the tokens of completed requests, prompts included, per second of the run."""
    return ratio(sample.total_input_tokens + sample.total_output_tokens, sample.duration_s)


COUNTS = (
    Metric(
        "duration",
        "s",
        "from the first send to the last response",
        lambda sample: sample.duration_s,
        single=True,
    ),
    Metric(
        "completed",
        "requests",
        "requests that got all their tokens; every other metric is of these alone",
        lambda sample: sample.completed,
        single=True,
    ),
    Metric("failed", "requests", "requests that did not complete", lambda sample: sample.failed, single=True),
    Metric(
        "total_input_tokens",
        "tokens",
        "tokens of the prompts",
        lambda sample: sample.total_input_tokens,
        single=True,
    ),
    Metric(
        "total_output_tokens",
        "tokens",
        "tokens emitted",
        lambda sample: sample.total_output_tokens,
        single=True,
    ),
    Metric(
        "request_throughput",
        "requests/s",
        "completed / duration",
        lambda sample: ratio(sample.completed, sample.duration_s),
        single=True,
    ),
    Metric(
        "request_goodput",
        "requests/s",
        "requests within all limits (<=) / duration; a request of one token has a TPOT of 0",
        request_goodput,
        single=True,
    ),
    Metric("output_throughput", "tokens/s", "total_output_tokens / duration", output_throughput, single=True),
    Metric(
        "total_token_throughput",
        "tokens/s",
        "(total_input_tokens + total_output_tokens) / duration",
        total_token_throughput,
        single=True,
    ),
)
PEAKS = (
    Metric(
        "max_output_tokens_per_s",
        "tokens",
        "the most tokens in one second, seconds counted from the first send",
        max_output_tokens_per_s,
        single=True,
    ),
    Metric(
        "max_concurrent_requests",
        "requests",
        "the largest overlap of the intervals [sending, last token)",
        max_concurrent_requests,
        single=True,
    ),
)
LATENCIES = (
    Metric("ttft_ms", "ms", "first token - sending, per request", lambda sample: sample.ttft_s, 1e3),
    Metric(
        "tpot_ms",
        "ms",
        "(last token - first token) / (output tokens - 1), per request of more than one token",
        lambda sample: sample.tpot_s[sample.several_tokens],
        1e3,
    ),
    Metric(
        "itl_ms",
        "ms",
        "gaps between successive tokens, those of all requests pooled",
        lambda sample: sample.times.pooled,
        1e3,
    ),
    Metric("e2el_ms", "ms", "last token - sending, per request", lambda sample: sample.e2e_s, 1e3),
)
STATISTICS = ("mean", "median", "std", "p99")

VLLM = Dialect("vllm", "vllm bench serve", (*LATENCIES, *COUNTS, *PEAKS), bench((99,)), STATISTICS)
