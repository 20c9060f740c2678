"""The large figures of a what-if: those that its features call for, as its summary has them."""

from functools import cache
from typing import Any

import pytest

pytest.importorskip("dash", reason="needs dash, of the extra dashboard")

from servesim.report.dashboard.tiles import TILES, _difference, figures_of, tiles
from servesim.report.dashboard.whatif import Answer, WhatIfs

BASE = (
    "model=llama3.1-8b",
    "cluster.tensor_parallel_size=1",
    "calibration=roofline",
    "workload.requests=150",
)
RUNS = {
    "plain": (),
    "sessions": ("workload=sessions", "scheduler/offload=host", "cluster.replicas=1"),
    "guess": ("scheduler/speculation=ngram",),
    "tenants": ("workload.tenants.paid.share=1", "workload.tenants.free.share=3"),
    "overload": (
        *("workload.arrivals.rate_rps=300", "scheduler.max_num_seqs=4", "client.timeout_s=5"),
        *("client.max_retries=1", "admission=queue_limit", "admission.max_queued=16"),
    ),
    "tight": (
        "scheduler.num_gpu_blocks_override=600",
        "workload/arrivals=burst",
        "scheduler.preemption_mode=swap",
    ),
}
WHATIFS = WhatIfs()


@cache
def answer(kind: str) -> Answer:
    found = WHATIFS.ask((*BASE, *RUNS[kind]))
    assert found.problems == ()
    return found


def shown(**answers: Answer) -> dict[str, Any]:
    """Return the tiles that are drawn, by their titles."""
    return {tile.children[0].children: tile for row in tiles(answers) for tile in row.children}


ALWAYS = [tile.title for tile in TILES if not tile.where]


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("plain", []),
        ("sessions", ["Prefix hits", "Prefill saved", "KV loaded", "Conversations"]),
        ("guess", ["Tokens per step", "Accepted"]),
        ("tenants", ["Fairness"]),
        ("overload", ["Rejected", "Timed out", "Retried", "Served"]),
        ("tight", ["Preempted", "Swapped"]),
    ],
)
def test_each_feature_has_its_figures(kind: str, more: list[str]) -> None:
    titles = list(shown(A=answer(kind)))
    assert titles[: len(ALWAYS)] == ALWAYS
    assert set(more) <= set(titles)
    if kind == "plain":
        assert titles == ALWAYS


def test_figures_are_those_of_the_summary() -> None:
    for kind in RUNS:
        summary, figures = answer(kind).summary, figures_of(answer(kind))
        assert summary is not None
        prefill, dropped = summary["prefill"], summary["accounting"]["dropped"]
        loaded = (summary["offload"] or {}).get("loaded_tokens", 0)
        found = prefill["cached_tokens"] + loaded
        assert figures["prefill.saved"] == pytest.approx(found / (found + prefill["computed_tokens"]))
        assert figures["accounting.rejected"] == sum(dropped.values())
        assert figures["accounting.timed_out"] == summary["accounting"]["timed_out"]
    assert figures_of(answer("overload"))["accounting.rejected"] > 0
    assert figures_of(answer("sessions"))["prefill.saved"] > 0


def test_of_two_configurations_both_are_told_where_one_has_the_feature() -> None:
    both = shown(A=answer("plain"), B=answer("guess"))
    lines = [line.children for line in both["Accepted"].children]
    a, b = ([part.children if hasattr(part, "children") else part for part in line] for line in lines[1:3])
    assert (a, b[0]) == (["A", "-"], "B")
    assert b[1].endswith("%")
    assert lines[3] == "-"


@pytest.mark.parametrize(
    ("column", "a", "change", "painted"),
    [
        ("latency.ttft_s.p99", 1.0, 0.0049, ""),
        ("latency.ttft_s.p99", 1.0, 0.0051, "worse"),
        ("goodput.requests_per_s", 8000.0, 0.4, ""),
        ("goodput.requests_per_s", 8000.0, -0.6, "worse"),
        ("goodput.attainment", 0.9, 0.0004, ""),
        ("goodput.attainment", 0.9, 0.0006, "better"),
        ("cost.usd_per_million_output_tokens", 2.0, -0.004, ""),
        ("cost.usd_per_million_output_tokens", 2.0, -0.006, "better"),
        ("goodput.requests_per_s", 0.0, 0.0, ""),
    ],
)
def test_a_difference_that_no_digit_shows_is_neither_better_nor_worse(
    column: str, a: float, change: float, painted: str
) -> None:
    asked = next(tile.metric for tile in TILES if tile.metric.column == column)
    assert _difference(a, a + change, asked).className.split()[1:] == [painted][: bool(painted)]
