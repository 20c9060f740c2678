"""The metrics of AIPerf, and of GenAI-Perf before it (AIPerf's metrics reference).

Those of :data:`RECORDS` have a value for each request, NaN where it has none; the others are of a whole run.
"""

from __future__ import annotations

from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from servesim.results.dialects.dialect import Dialect, Metric
from servesim.results.dialects.sample import Sample
from servesim.results.dialects.statistics import aiperf
from servesim.results.rates import ratio
from servesim.results.runs import Floats

_PER_USER = "tokens/sec/user"


def inter_token_latency_s(sample: Sample) -> Floats:
    """Return the mean gap between the tokens of each request in seconds, NaN for a single token."""
    return np.where(sample.several_tokens, sample.tpot_s, np.nan)


def per_user(sample: Sample) -> Floats:
    """Return 1 / inter token latency of each request, in tokens per second."""
    return _quotient(np.ones(sample.completed), inter_token_latency_s(sample))


def prefill_per_user(sample: Sample) -> Floats:
    """Return prompt tokens per second of time to first token, of each request."""
    return _quotient(sample.input_tokens, sample.ttft_s)


def end_to_end_per_user(sample: Sample) -> Floats:
    """Return output tokens per second of the whole latency, of each request."""
    return _quotient(sample.output_tokens, sample.e2e_s)


def _quotient(amount: NDArray[Any], seconds: Floats) -> Floats:
    """Return amount / seconds, NaN where no time passes or none is known."""
    quotient: Floats = np.divide(amount, seconds, out=np.full(len(seconds), np.nan), where=seconds > 0)
    return quotient


def good(sample: Sample) -> int | None:
    """Return how many requests are within all limits; one of a single token has no latency to be within."""
    return sample.good(tpot_of_one_token_s=nan)


def good_fraction(sample: Sample) -> float | None:
    """Return the share of good requests in all, failed ones included."""
    found = good(sample)
    return None if found is None else ratio(found, sample.completed + sample.failed)


def goodput(sample: Sample) -> float | None:
    """Return good requests per second."""
    found = good(sample)
    return None if found is None else ratio(found, sample.served_s)


RECORDS = (
    Metric(
        "time_to_first_token",
        "ms",
        "first token - sending, per request",
        lambda sample: sample.ttft_s,
        1e3,
        "Time to First Token",
    ),
    Metric(
        "time_to_second_token",
        "ms",
        "second token - first token, per request",
        lambda sample: sample.times.second_token_s(),
        1e3,
        "Time to Second Token",
    ),
    Metric(
        "request_latency",
        "ms",
        "last token - sending, per request",
        lambda sample: sample.e2e_s,
        1e3,
        "Request Latency",
    ),
    Metric(
        "inter_token_latency",
        "ms",
        "(request latency - time to first token) / (output tokens - 1), per request: vLLM's TPOT",
        inter_token_latency_s,
        1e3,
        "Inter Token Latency",
    ),
    Metric(
        "inter_chunk_latency",
        "ms",
        "gaps between successive tokens, those of all requests pooled: vLLM's ITL",
        lambda sample: sample.times.pooled,
        1e3,
        "Inter Chunk Latency",
    ),
    Metric(
        "output_token_throughput_per_user",
        _PER_USER,
        "1 / inter token latency, per request",
        per_user,
        header="Output Token Throughput Per User",
    ),
    Metric(
        "e2e_output_token_throughput",
        "tokens/sec",
        "output tokens / request latency, per request",
        end_to_end_per_user,
        header="E2E Output Token Throughput",
    ),
    Metric(
        "prefill_throughput_per_user",
        _PER_USER,
        "input tokens / time to first token, per request",
        prefill_per_user,
        header="Prefill Throughput Per User",
    ),
    Metric(
        "output_sequence_length",
        "tokens",
        "output tokens, per request",
        lambda sample: sample.output_tokens.astype(np.float64),
        header="Output Sequence Length",
    ),
    Metric(
        "output_token_count",
        "tokens",
        "output tokens without those of reasoning, which are not told apart here",
        lambda sample: sample.output_tokens.astype(np.float64),
        header="Output Token Count",
    ),
    Metric(
        "input_sequence_length",
        "tokens",
        "tokens of the prompt, per request",
        lambda sample: sample.input_tokens.astype(np.float64),
        header="Input Sequence Length",
    ),
)
TOTALS = (
    Metric(
        "output_token_throughput",
        "tokens/sec",
        "output tokens / benchmark duration",
        lambda sample: ratio(sample.total_output_tokens, sample.served_s),
        header="Output Token Throughput",
        single=True,
    ),
    Metric(
        "total_token_throughput",
        "tokens/sec",
        "input and output tokens / benchmark duration",
        lambda sample: ratio(sample.total_input_tokens + sample.total_output_tokens, sample.served_s),
        header="Total Token Throughput",
        single=True,
    ),
    Metric(
        "request_throughput",
        "requests/sec",
        "request count / benchmark duration",
        lambda sample: ratio(sample.completed, sample.served_s),
        header="Request Throughput",
        single=True,
    ),
    Metric(
        "request_count",
        "requests",
        "requests that succeeded; latencies and lengths are of these alone",
        lambda sample: sample.completed,
        header="Request Count",
        single=True,
    ),
    Metric(
        "error_request_count",
        "requests",
        "requests that did not",
        lambda sample: sample.failed,
        header="Error Request Count",
        single=True,
    ),
    Metric(
        "total_isl",
        "tokens",
        "input tokens of all requests that succeeded",
        lambda sample: sample.total_input_tokens,
        header="Total Input Sequence Length",
        single=True,
    ),
    Metric(
        "total_osl",
        "tokens",
        "output tokens of all requests that succeeded",
        lambda sample: sample.total_output_tokens,
        header="Total Output Sequence Length",
        single=True,
    ),
    Metric(
        "benchmark_duration",
        "sec",
        "from the first send to the last response of the requests that succeeded",
        lambda sample: sample.served_s,
        header="Benchmark Duration",
        single=True,
    ),
    Metric(
        "good_request_count",
        "requests",
        "requests within all limits (<=); where ITL is limited, those of one token are not",
        good,
        header="Good Request Count",
        single=True,
    ),
    Metric(
        "good_request_fraction",
        "ratio",
        "good request count / (request count + error request count)",
        good_fraction,
        header="GoodRequestFraction",
        single=True,
    ),
    Metric(
        "goodput",
        "requests/sec",
        "good request count / benchmark duration",
        goodput,
        header="Goodput",
        single=True,
    ),
)

AIPERF = Dialect(
    "aiperf", "AIPerf", (*RECORDS, *TOTALS), aiperf, ("avg", "min", "max", "p99", "p90", "p50", "std")
)
