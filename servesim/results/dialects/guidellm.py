"""The metrics of GuideLLM (``guidellm/schemas/request_stats.py`` and ``.../generative/metrics.py``)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from servesim.results.dialects.dialect import Dialect, Metric
from servesim.results.dialects.sample import Sample
from servesim.results.dialects.statistics import Statistics, Weighted, guidellm
from servesim.results.rates import ratio
from servesim.results.runs import Floats


def per_request(values: Callable[[Sample], Floats]) -> Callable[[Sample], Weighted]:
    """Return what gives the values of a sample, each of which counts once."""
    return lambda sample: Weighted(values(sample), np.ones(sample.completed))


def time_per_output_token_ms(sample: Sample) -> Weighted:
    """Return what a token cost on average, the first included; a request counts once for each token."""
    tokens = sample.output_tokens.astype(np.float64)
    return Weighted(1e3 * sample.e2e_s / np.maximum(tokens, 1.0), tokens)


def inter_token_latency_ms(sample: Sample) -> Weighted:
    """Return the mean gap between the tokens of a request, which counts once for each gap."""
    return Weighted(1e3 * np.nan_to_num(sample.tpot_s), np.maximum(sample.output_tokens - 1, 0))


def per_second(amount: Callable[[Sample], float]) -> Callable[[Sample], Statistics]:
    """Return what gives the mean of an amount over the time from the first send to the last response."""
    return lambda sample: {"mean": ratio(amount(sample), sample.served_s)}


GUIDELLM = Dialect(
    "guidellm",
    "GuideLLM",
    (
        Metric(
            "time_to_first_token_ms",
            "ms",
            "first token - start, per request",
            per_request(lambda sample: 1e3 * sample.ttft_s),
        ),
        Metric(
            "inter_token_latency_ms",
            "ms",
            "(last token - first token) / (output tokens - 1); each request weighs output tokens - 1",
            inter_token_latency_ms,
        ),
        Metric(
            "time_per_output_token_ms",
            "ms",
            "(last token - start) / output tokens: with the first; each request weighs output tokens",
            time_per_output_token_ms,
        ),
        Metric("request_latency", "s", "end - start, per request", per_request(lambda sample: sample.e2e_s)),
        Metric(
            "prompt_token_count",
            "tokens",
            "tokens of the prompt, per request",
            per_request(lambda sample: sample.input_tokens.astype(np.float64)),
        ),
        Metric(
            "output_token_count",
            "tokens",
            "tokens of the answer, per request",
            per_request(lambda sample: sample.output_tokens.astype(np.float64)),
        ),
        Metric(
            "requests_per_second",
            "requests/s",
            "successful requests / time from the first start to the last end",
            per_second(lambda sample: sample.completed),
        ),
        Metric(
            "request_concurrency",
            "requests",
            "requests under way, averaged over the same time",
            per_second(lambda sample: float(sample.e2e_s.sum())),
        ),
        Metric(
            "output_tokens_per_second",
            "tokens/s",
            "output tokens / the same time",
            per_second(lambda sample: sample.total_output_tokens),
        ),
        Metric(
            "tokens_per_second",
            "tokens/s",
            "prompt and output tokens / the same time",
            per_second(lambda sample: sample.total_input_tokens + sample.total_output_tokens),
        ),
    ),
    guidellm,
    ("mean", "median", "p95", "p99", "std_dev", "max"),
)
