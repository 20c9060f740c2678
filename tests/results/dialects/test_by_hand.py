"""Each dialect worked out by hand on one run, from the times of its tokens."""

from __future__ import annotations

from math import sqrt
from typing import Any

import pytest

from servesim.results.slo import Slo
from tests.results.dialects.run import sample_of, small, values


def approx(expected: Any) -> Any:
    return pytest.approx(expected, rel=1e-12)


def test_vllm() -> None:
    """TPOT of the two requests with gaps; ITL of six pooled gaps; percentiles between ranks."""
    got = values("vllm")
    assert got["ttft_ms"] == approx(
        {"mean": 1250, "median": 1000, "std": 1000 * sqrt(0.875 / 3), "p99": 1980}
    )
    assert got["tpot_ms"] == approx({"mean": 468.75, "median": 468.75, "std": 93.75, "p99": 560.625})
    assert got["itl_ms"] == approx({"mean": 500, "median": 500, "std": 250, "p99": 975})
    assert got["e2el_ms"] == approx({"mean": 2250, "median": 2750, "std": 1000 * sqrt(3.5 / 3), "p99": 3240})
    assert {name: value for name, value in got.items() if not isinstance(value, dict)} == approx(
        {
            "duration": 3.75,
            "completed": 3,
            "failed": 1,
            "total_input_tokens": 34,
            "total_output_tokens": 9,
            "request_throughput": 3 / 3.75,
            "request_goodput": 1 / 3.75,  # the last one: it has one token, so a TPOT of 0
            "output_throughput": 9 / 3.75,
            "total_token_throughput": 43 / 3.75,
            "max_output_tokens_per_s": 4,  # in [2, 3): two requests at 2.5 and at 2.75
            "max_concurrent_requests": 3,  # from 3.0 to 3.25
        }
    )


def test_aiperf() -> None:
    """Its inter token latency is per request, its inter chunk latency pooled, and 1/ITL is averaged."""
    got = values("aiperf")
    assert got["time_to_second_token"]["avg"] == approx(375)  # 0.5 and 0.25 s
    itl = got["inter_token_latency"]
    assert itl == approx(
        {
            "avg": 468.75,
            "min": 375,
            "max": 562.5,
            "p1": 376.875,
            "p5": 384.375,
            "p10": 393.75,
            "p25": 421.875,
            "p50": 468.75,
            "p75": 515.625,
            "p90": 543.75,
            "p95": 553.125,
            "p99": 560.625,
            "std": 93.75,
            "count": 2,
            "sum": 937.5,
        }
    )
    icl = got["inter_chunk_latency"]
    assert [icl[name] for name in ("avg", "min", "max", "std", "count", "sum")] == approx(
        [500, 250, 1000, 250, 6, 3000]
    )
    assert got["output_token_throughput_per_user"]["avg"] == approx((1 / 0.5625 + 1 / 0.375) / 2)
    assert got["e2e_output_token_throughput"]["max"] == approx(5 / 3.25)
    assert got["prefill_throughput_per_user"]["avg"] == approx((10 + 10 + 4 / 0.75) / 3)
    assert got["output_sequence_length"]["sum"] == approx(9)
    assert (got["request_count"], got["error_request_count"]) == (3, 1)
    assert got["output_token_throughput"] == approx(9 / 3.75)
    assert got["request_throughput"] == approx(3 / 3.75)
    assert (got["good_request_count"], got["good_request_fraction"]) == (0, 0)  # one token has no ITL


def test_guidellm() -> None:
    """Requests weigh as much as they have tokens or gaps; a percentile is a value that occurred."""
    got = values("guidellm")
    tpot = got["time_per_output_token_ms"]  # 650 five times, 2750 / 3 three times, 750 once
    assert tpot["mean"] == approx(750)
    assert [tpot[name] for name in ("p50", "p75", "p90", "count")] == approx([650, 2750 / 3, 2750 / 3, 9])
    itl = got["inter_token_latency_ms"]  # 562.5 four times, 375 twice
    assert itl["mean"] == approx(500)
    assert [itl[name] for name in ("p25", "p50", "mode", "count")] == approx([375, 562.5, 562.5, 6])
    assert itl["std_dev"] == approx(sqrt((4 * 62.5**2 + 2 * 125**2) / 6))
    ttft = got["time_to_first_token_ms"]
    assert [ttft[name] for name in ("mean", "median", "p99", "total_sum")] == approx([1250, 1000, 2000, 3750])
    assert got["request_concurrency"]["mean"] == approx(6.75 / 3.75)


def test_inferencex() -> None:
    """Seconds; interactivity is 1 over the statistic of TPOT; rates per GPU."""
    got = values("inferencex")
    assert got["tpot"]["p99"] == approx(0.560625)
    assert got["intvty"] == approx(
        {"mean": 1 / 0.46875, "median": 1 / 0.46875, "p90": 1 / 0.54375, "p99": 1 / 0.560625}
    )
    assert got["tput_per_gpu"] == approx(43 / 3.75 / 2)
    assert got["output_tput_per_gpu"] == approx(9 / 3.75 / 2)


def test_inferencex_divides_output_by_the_gpus_that_decode() -> None:
    got = values("inferencex", sample_of(small(), prefill=4, decode=12))
    assert got["output_tput_per_gpu"] == approx(9 / 3.75 / 12)
    assert got["input_tput_per_gpu"] == approx(34 / 3.75 / 4)
    assert got["tput_per_gpu"] == approx(43 / 3.75 / 16)


def test_goodput_asks_for_limits_and_may_ask_for_all() -> None:
    assert values("vllm", sample_of(small(), slo=Slo()))["request_goodput"] is None
    assert values("aiperf", sample_of(small(), slo=Slo()))["goodput"] is None
    strict = Slo(ttft_s=1.0, e2e_s=3.25)  # the first request has exactly these
    assert values("aiperf", sample_of(small(), slo=strict))["good_request_count"] == 2
    assert values("vllm", sample_of(small(), slo=strict))["request_goodput"] == approx(2 / 3.75)
