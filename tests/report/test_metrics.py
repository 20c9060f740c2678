"""What figures are called, in which unit, and which way is better."""

import pytest

from servesim.report.metrics import SHOWN, metric


@pytest.mark.parametrize(
    ("column", "title", "best"),
    [
        ("latency.ttft_s.p99", "p99 TTFT (s)", -1),
        ("latency.tpot_s.p50", "Median TPOT (ms)", -1),
        ("latency.itl_s.mean", "Mean ITL (ms)", -1),
        ("latency.interactivity.p1", "p1 interactivity (tokens/s per user)", 1),
        ("throughput.requests_per_s", "Requests completed (requests/s)", 1),
        ("throughput.output_tokens_per_s_per_gpu", "Output throughput (tokens/s per GPU)", 1),
        ("goodput.attainment", "SLO attainment (% of requests)", 1),
        ("goodput.requests_per_s_per_gpu", "Goodput (requests/s per GPU)", 1),
        ("cost.usd_per_good_request", "Cost ($ per request that met the SLO)", -1),
        ("utilisation.compute", "Compute (% of peak)", 0),
        ("fairness.jain_index", "Jain's index (1: even)", 1),
        ("fairness.tenants.my.own.ttft_s.p99", "p99 TTFT of my.own (s)", -1),
    ],
)
def test_known_figures_have_a_title_with_their_unit(column, title, best):
    made = metric(column)
    assert (made.column, made.title, made.best) == (column, title, best)
    assert made.definition
    assert title == f"{made.name} ({title.partition('(')[2]}"


@pytest.mark.parametrize(
    "column", ["memory.kv_blocks", "throughput.roles.decode.x_per_s", "cost.usd", "cost", "x", "fairness.of"]
)
def test_of_other_figures_only_the_name_is_known(column):
    assert (metric(column).title, metric(column).best) == (column, 0)


def test_a_limit_lies_where_a_request_at_the_limit_does():
    assert metric("latency.ttft_s.p99").bound(0.5) == 0.5
    assert metric("latency.tpot_s.p99").bound(0.05) == 50.0
    assert metric("latency.interactivity.p50").bound(0.05) == 20.0


def test_what_is_shown_of_every_point_is_known():
    assert all(each.definition and each.best for each in SHOWN)
