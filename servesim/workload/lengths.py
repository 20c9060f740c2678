"""Lengths of requests: how many tokens go in and come out.

A distribution turns a request's pair of independent standard normals into its input and output tokens. So
request i, whose pair is drawn from a stream of its own, has the same place in every distribution and the same
lengths whatever the arrivals are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from servesim.check import Problem, quantity
from servesim.workload.batch import FloatArray, IntArray
from servesim.workload.normal import normal_cdf

#: Longer than any context window, and short enough that the widest distribution stays in 64 bits.
MOST_TOKENS = 10**7


class Lengths(Protocol):
    """A distribution of the lengths of a request; pairs are (input, output)."""

    @property
    def mean(self) -> tuple[float, float]:
        """Return the mean lengths (tokens)."""

    @property
    def variance(self) -> tuple[float, float]:
        """Return the variances of the lengths (tokens squared)."""

    def tokens(self, normals: FloatArray) -> tuple[IntArray, IntArray]:
        """Return whole tokens, at least 1, for standard normals of shape (requests, 2)."""


@dataclass(frozen=True)
class Fixed:
    """Every request has the same lengths."""

    input: int = quantity("tokens", at_least=1, at_most=MOST_TOKENS)
    output: int = quantity("tokens", at_least=1, at_most=MOST_TOKENS)

    @property
    def mean(self) -> tuple[float, float]:
        """Return the mean lengths (tokens)."""
        return float(self.input), float(self.output)

    @property
    def variance(self) -> tuple[float, float]:
        """Return 0 for both."""
        return 0.0, 0.0

    def tokens(self, normals: FloatArray) -> tuple[IntArray, IntArray]:
        """Return the two lengths once per row of ``normals``."""
        return np.full(len(normals), self.input), np.full(len(normals), self.output)


@dataclass(frozen=True)
class Uniform:
    """Every whole length within ``range_ratio`` of the given one is equally likely.

    As ``vllm bench serve --random-range-ratio`` (vLLM, vllm/benchmarks/datasets.py): from
    floor(n(1 - r)), at least 1, to ceil(n(1 + r)), both included.
    """

    input: int = quantity("tokens", at_least=1, at_most=MOST_TOKENS)
    output: int = quantity("tokens", at_least=1, at_most=MOST_TOKENS)
    range_ratio: float = quantity("share of the length", at_least=0, below=1)

    @property
    def mean(self) -> tuple[float, float]:
        """Return the mean lengths (tokens)."""
        return sum(self._range(self.input)) / 2, sum(self._range(self.output)) / 2

    @property
    def variance(self) -> tuple[float, float]:
        """Return (w^2 - 1)/12 for w possible lengths (tokens squared)."""
        return _variance(*self._range(self.input)), _variance(*self._range(self.output))

    def tokens(self, normals: FloatArray) -> tuple[IntArray, IntArray]:
        """Return one pair of lengths per row of ``normals``."""
        inputs, outputs = self._range(self.input), self._range(self.output)
        return _uniform(normals[:, 0], *inputs), _uniform(normals[:, 1], *outputs)

    def _range(self, length: int) -> tuple[int, int]:
        return _around(length, self.range_ratio)


@dataclass(frozen=True)
class Range:
    """Whole lengths, equally likely, as the random datasets of load generators draw them.

    With ``side=both`` from floor(n(1 - r)), at least 1, to ceil(n(1 + r)), both included: vLLM,
    vllm/benchmarks/datasets, ``RandomDataset.get_sampling_params``, where the prompt is drawn about the input
    less the ``special_tokens`` that the tokenizer adds to it, and the output may have a ratio of its own.
    With ``side=below`` from floor(n r), at least 1, to n: vLLM's first benchmark_serving.py, SGLang's
    bench_serving, and utils/bench_serving/benchmark_serving.py of InferenceX, ``sample_random_requests``.
    """

    input: int = quantity("tokens", at_least=1, at_most=MOST_TOKENS)
    output: int = quantity("tokens", at_least=1, at_most=MOST_TOKENS)
    range_ratio: float = quantity("share of the length", at_least=0, at_most=1, default=0.0)
    output_range_ratio: float | None = quantity("share of the length", at_least=0, at_most=1, default=None)
    side: Literal["both", "below"] = quantity(default="both")
    special_tokens: int = quantity("tokens", at_least=0, at_most=MOST_TOKENS, default=0)

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong between fields: a ratio of 1 on both sides, or nothing left to draw."""
        for name in ("range_ratio", "output_range_ratio"):
            if self.side == "both" and getattr(self, name) == 1:
                yield Problem(name, 1, "must be below 1 with side=both (share of the length)")
        if self.special_tokens >= self.input:
            message = f"must be below input, {self.input}: a prompt has tokens of its own (tokens)"
            yield Problem("special_tokens", self.special_tokens, message)

    @property
    def mean(self) -> tuple[float, float]:
        """Return the mean lengths (tokens)."""
        return self.special_tokens + sum(self._inputs) / 2, sum(self._outputs) / 2

    @property
    def variance(self) -> tuple[float, float]:
        """Return (w^2 - 1)/12 for w possible lengths (tokens squared)."""
        return _variance(*self._inputs), _variance(*self._outputs)

    def tokens(self, normals: FloatArray) -> tuple[IntArray, IntArray]:
        """Return one pair of lengths per row of ``normals``."""
        prompts = self.special_tokens + _uniform(normals[:, 0], *self._inputs)
        return prompts, _uniform(normals[:, 1], *self._outputs)

    @property
    def _inputs(self) -> tuple[int, int]:
        return self._range(self.input - self.special_tokens, self.range_ratio)

    @property
    def _outputs(self) -> tuple[int, int]:
        own = self.output_range_ratio
        return self._range(self.output, self.range_ratio if own is None else own)

    def _range(self, length: int, ratio: float) -> tuple[int, int]:
        return _around(length, ratio) if self.side == "both" else (max(1, int(length * ratio)), length)


@dataclass(frozen=True)
class Lognormal:
    """Log-normal lengths with the given means and coefficients of variation (standard deviation / mean).

    With mean m and coefficient of variation c, ln(length) is normal with variance s^2 = ln(1 + c^2) and mean
    ln(m) - s^2/2. Lengths are rounded to whole tokens, 1 at the least, which adds about 1/12 to the variance
    and matters to the mean only where that is of a few tokens.
    """

    input: float = quantity("tokens", at_least=1, at_most=MOST_TOKENS)
    output: float = quantity("tokens", at_least=1, at_most=MOST_TOKENS)
    input_cv: float = quantity("standard deviation / mean", at_least=0, at_most=10, default=1.0)
    output_cv: float = quantity("standard deviation / mean", at_least=0, at_most=10, default=1.0)

    @property
    def mean(self) -> tuple[float, float]:
        """Return the mean lengths before rounding (tokens)."""
        return self.input, self.output

    @property
    def variance(self) -> tuple[float, float]:
        """Return the variances before rounding (tokens squared)."""
        return (self.input * self.input_cv) ** 2, (self.output * self.output_cv) ** 2

    def tokens(self, normals: FloatArray) -> tuple[IntArray, IntArray]:
        """Return one pair of lengths per row of ``normals``."""
        return (
            _lognormal(normals[:, 0], self.input, self.input_cv),
            _lognormal(normals[:, 1], self.output, self.output_cv),
        )


@dataclass(frozen=True)
class Geometric:
    """Geometric lengths, from 1 token: after every token the request ends with probability 1/mean."""

    input: float = quantity("tokens", at_least=1, at_most=MOST_TOKENS)
    output: float = quantity("tokens", at_least=1, at_most=MOST_TOKENS)

    @property
    def mean(self) -> tuple[float, float]:
        """Return the mean lengths (tokens)."""
        return self.input, self.output

    @property
    def variance(self) -> tuple[float, float]:
        """Return m(m - 1) for mean m (tokens squared)."""
        return self.input * (self.input - 1), self.output * (self.output - 1)

    def tokens(self, normals: FloatArray) -> tuple[IntArray, IntArray]:
        """Return one pair of lengths per row of ``normals``."""
        return _geometric(normals[:, 0], self.input), _geometric(normals[:, 1], self.output)


def whole_tokens(lengths: FloatArray) -> IntArray:
    """Round lengths to whole tokens, 1 at the least."""
    return np.maximum(np.rint(lengths), 1).astype(np.int64)


def _around(length: int, ratio: float) -> tuple[int, int]:
    """Return the shortest and the longest length within a share of the given one."""
    return max(1, math.floor(length * (1 - ratio))), math.ceil(length * (1 + ratio))


def _uniform(normals: FloatArray, low: int, high: int) -> IntArray:
    """Return whole lengths from ``low`` to ``high``, each equally likely."""
    steps = (normal_cdf(normals) * (high - low + 1)).astype(np.int64)
    return np.minimum(low + steps, high)


def _variance(low: int, high: int) -> float:
    return float((high - low + 1) ** 2 - 1) / 12


def _lognormal(normals: FloatArray, mean: float, cv: float) -> IntArray:
    log_variance = math.log1p(cv**2)
    return whole_tokens(np.exp(math.log(mean) - log_variance / 2 + math.sqrt(log_variance) * normals))


def _geometric(normals: FloatArray, mean: float) -> IntArray:
    """Invert P(length > k) = (1 - 1/mean)^k."""
    if mean == 1:
        return np.ones(len(normals), dtype=np.int64)
    tail = np.ceil(np.log(normal_cdf(-normals)) / math.log1p(-1 / mean))
    return np.maximum(tail, 1).astype(np.int64)
