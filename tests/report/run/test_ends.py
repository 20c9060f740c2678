"""Every end of a request is drawn once, and what only some runs have is on their pages."""

import numpy as np
import pytest

from servesim.report.content import Chart, Table
from servesim.report.run.bins import edges
from servesim.report.run.ends import BINS, ends_over_time
from servesim.report.run.page import run_page
from servesim.report.run.saved import Run
from servesim.screen.groups import evenness
from servesim.screen.options import scheduler
from tests.report.run.runs import made

TIMES = {"mean": 0.2, "p50": 0.1, "p99": 0.4}
TENANT = {
    "requests": 30,
    "completed": 20,
    "dropped": 0,
    "timed_out": 10,
    "attainment": 0.5,
    "weight": 1.0,
    "ttft_s": TIMES,
    "service_per_s": 7.0,
    "backlogged_service_per_s": 6.0,
}
FAIRNESS = {
    "jain_index": 0.75,
    "backlogged_s": 3.0,
    "number": 1,
    "tenants": {"x": TENANT},
}
TURNS = {"requests": 5, "completed": 4, "input_tokens": 900.0, "cached_tokens": 321.0, "ttft_s": 0.25}


def overloaded() -> Run:
    """Return a run a third of whose requests timed out, with every section that a summary can have."""
    given = made("continuous")
    status = given.requests.status.astype(str).to_numpy(copy=True)
    status[::3] = "timed_out"
    latency = given.summary["latency"]
    scenario = given.summary["scenario"]
    order = {"kind": "priority", "preempt": False}
    summary = {
        **given.summary,
        "saturated": False,
        "overloaded": True,
        "accounting": given.summary["accounting"] | {"dropped": {"slo": 9}},
        "scenario": {**scenario, "scheduler": {**scenario["scheduler"], "queue_order": order}},
        "latency": {**latency, "client_queue_s": latency["ttft_s"], "user_e2e_s": latency["e2e_s"]},
        "prefill": {
            "computed_tokens": 60,
            "cached_tokens": 40,
            "evicted_blocks": 0,
            "recovered_tokens": 0,
            "hit_rate": 0.4,
        },
        "fairness": FAIRNESS,
        "classes": {"0": {**TENANT, "requests": 12, "e2e_s": TIMES}},
        "sessions": {
            **dict.fromkeys(
                ("begun", "completed", "context_full", "failed", "unfinished", "turns_given_up"), 1
            ),
            "requests": TIMES,
            "duration_s": TIMES,
            "requests_meant": 5.0,
            "begun_for_s": None,
            "first_turns": TURNS,
            "later_turns": TURNS,
        },
        "speculation": {
            "kind": "ngram",
            "num_speculative_tokens": 3,
            "mean_accepted_length": 2.0,
            "expected_length": 2.0,
            "accepted_share": 0.5,
            "draft_tokens": 90,
        },
        "swap": {"out": 2, "out_blocks": 8, "in_blocks": 8, "refused": 0, "seconds": 0.1},
    }
    return Run(summary, given.requests.assign(status=status), given.steps)


def test_every_end_counts_once_by_how_it_was() -> None:
    run = overloaded()
    at = edges(*run.span, BINS)
    counts = ends_over_time(run).sum() * (at[1] - at[0])
    assert dict(counts.round(6)) == dict(run.requests.status.value_counts())
    late = run.requests.ended_s[run.requests.status == "timed_out"].ge(at[BINS // 2]).sum()
    drawn = ends_over_time(run).timed_out.iloc[BINS // 2 :].sum() * (at[1] - at[0])
    assert drawn == pytest.approx(late)
    assert np.all(ends_over_time(run) >= 0)


def test_ends_are_drawn_where_not_all_are_served() -> None:
    assert "Ends" in [section.title for section in run_page(overloaded()).sections]
    assert "Ends" not in [section.title for section in run_page(made("continuous")).sections]


def test_latencies_are_drawn_of_the_completed_as_they_are_told() -> None:
    """Whoever hung up after his first token is in no latency: 3,593 may have one where 811 completed."""
    run = overloaded()
    lost = run.requests.status == "timed_out"
    given = run.requests.assign(
        e2e_s=run.requests.e2e_s.mask(lost), ttft_s=run.requests.ttft_s.mask(lost, 1e9)
    )
    page = run_page(Run(run.summary, given, run.steps))
    (section,) = [each for each in page.sections if each.title == "Latency"]
    for chart in section.parts:
        assert isinstance(chart, Chart)
        times = np.concatenate(
            [trace.x if "distribution" in chart.title else trace.y for trace in chart.figure.data]
        )
        assert np.nanmax(times) < 1e9, chart.title


def test_what_only_some_runs_have_is_on_their_pages() -> None:
    run = overloaded()
    tables = {part.title: part for part in run_page(run).sections[0].parts if isinstance(part, Table)}
    told = {row[0]: row[1] for row in tables["What it did, on what, and what it cost"].rows}
    assert {"sessions", "prefix cache", "speculation", "swap"} <= {*told}
    assert told["prefix cache"].startswith("40.0% of")  # type: ignore[union-attr]
    assert told["scheduler"] == scheduler(run.summary["scenario"])
    assert told["scheduler"].startswith("continuous: queue_order=priority, ")
    assert "{" not in "".join(map(str, told.values()))
    assert "9 dropped (first token predicted too late)" in told["requests"]
    assert told["load, mean use"].startswith("OVERLOADED (9 rejected); ")  # type: ignore[union-attr]
    assert "E2E from due" in [row[0] for row in tables["Latency in milliseconds"].rows]
    assert tables["Tenants"].rows[0][0] == "x"
    assert tables["Tenants"].rows[0][1:5] == ["30", "20", "10", "50.0%"]
    assert tables["Service of tenants"].caption == f"Whole run: {evenness(run.summary['fairness'])}."
    assert tables["Classes"].rows[0][:2] == ["0", "12"]
    assert [row[4] for row in tables["Turns of sessions"].rows] == ["321", "321"]
    plain = {part.title for part in run_page(made("continuous")).sections[0].parts if isinstance(part, Table)}
    assert not plain & {"Tenants", "Classes", "Turns of sessions"}
