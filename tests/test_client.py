"""The client of a run: its keys, what they do to the figures, and what goes with what."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import servesim
from servesim.check import ConfigError
from servesim.results.result import Result

SMALL = (
    "model=llama3.1-8b",
    "cluster.replicas=1",
    "cluster.tensor_parallel_size=1",
    "calibration=roofline",
    "workload/lengths=fixed",
    "workload.lengths.output=32",
    "workload.requests=60",
)
BURST = (*SMALL, "workload/arrivals=burst")
OVERLOADED = (*SMALL, "workload.requests=1500", "workload.arrivals.rate_rps=300")


def run(*overrides: str) -> Result:
    return servesim.run(servesim.load(*overrides))


def refused(*overrides: str) -> list[tuple[str, str]]:
    with pytest.raises(ConfigError) as caught:
        servesim.load(*overrides)
    return [(problem.path, problem.message) for problem in caught.value.problems]


def figures(result: Result) -> dict[str, Any]:
    """Return all that a summary says but for its configuration, the simulator's own speed, and warm-ups."""
    summary = {key: value for key, value in result.summary.items() if key not in ("scenario", "simulator")}
    accounting = {key: value for key, value in summary["accounting"].items() if key != "warmup"}
    return summary | {"accounting": accounting}


# ---- max_concurrency -------------------------------------------------------------------------------


def test_what_waits_in_the_client_is_neither_ttft_nor_e2e() -> None:
    """Latencies begin with the sending, and their parts sum to them; the wait has a column of its own."""
    result = run(*BURST, "client.max_concurrency=4")
    requests = result.requests.sort_values("request_id")
    waited = result.summary["latency"]["client_queue_s"]
    assert (requests.client_queue_s[:4] == 0).all()
    assert (requests.client_queue_s[4:] > 0).all()
    assert waited["mean"] == pytest.approx(requests.client_queue_s.mean())
    assert (requests.sent_s == requests.client_queue_s).all()  # all are due at 0
    parts = requests[[f"{part}_s" for part in result.summary["breakdown_s"]]].sum(axis=1)
    assert np.allclose(parts, requests.e2e_s)
    assert result.summary["duration_s"] == pytest.approx((requests.sent_s + requests.e2e_s).max())


def test_a_burst_has_no_rate_and_no_saturation() -> None:
    for limit in ("null", "4"):
        summary = run(*BURST, f"client.max_concurrency={limit}").summary
        assert summary["saturated"] is None
        assert summary["traffic"]["offered_per_s"] is None


def test_requests_that_pile_up_in_the_client_are_saturation() -> None:
    """As those that pile up in a queue are; and a semaphore that hardly binds changes no verdict."""
    assert run(*OVERLOADED).summary["saturated"] is True
    held = run(*OVERLOADED, "client.max_concurrency=8").summary
    assert held["saturated"] is True
    assert held["latency"]["ttft_s"]["p99"] < 1.0 < held["latency"]["client_queue_s"]["p50"]
    assert held["traffic"]["offered_per_s"] == pytest.approx(300, rel=0.2)
    calm = (*SMALL, "workload.requests=600", "workload.arrivals.rate_rps=10")
    verdicts = [run(*calm, f"client.max_concurrency={limit}").summary["saturated"] for limit in ("null", "6")]
    assert verdicts == [False, False]


def test_a_steady_part_is_found_behind_a_semaphore() -> None:
    """The moments of sending are in order, so that a warm-up can be cut off as without one."""
    summary = run(*BURST, "workload.requests=600", "client.max_concurrency=8", "steady=true").summary
    assert summary["settled"] is True
    assert 0 < summary["warmup_cut_s"] < summary["duration_s"] / 2
    assert summary["goodput"]["judged"] < 600


def test_a_closed_loop_is_refused_a_semaphore_of_its_own() -> None:
    wrong = refused(*SMALL, "workload/arrivals=closed_loop", "client.max_concurrency=4")
    assert [path for path, _ in wrong] == ["client.max_concurrency"]
    assert "set workload.arrivals.concurrency" in wrong[0][1]


def test_what_is_held_back_at_the_horizon_is_counted_and_not_clean() -> None:
    accounting = run(*BURST, "client.max_concurrency=4", "horizon_s=0.5").summary["accounting"]
    counted = accounting["injected"] + accounting["client_queued"] + accounting["not_sent"]
    assert (counted, accounting["clean"]) == (60, False)
    assert accounting["client_queued"] > 0
    done = run(*BURST, "client.max_concurrency=4").summary["accounting"]
    assert (done["client_queued"], done["clean"]) == (0, True)


def test_what_is_held_back_at_the_horizon_counts_as_asked_for() -> None:
    """The rate offered is that of the traffic, whatever the client lets through, and so is what is judged."""
    limits = ("horizon_s=4", "workload/arrivals=constant", "workload.arrivals.rate_rps=300")
    free, held = (
        run(*OVERLOADED, *limits, f"client.max_concurrency={limit}").summary for limit in ("null", "8")
    )
    due = held["accounting"]["injected"] + held["accounting"]["client_queued"]
    assert held["accounting"]["client_queued"] > 100
    assert due == free["accounting"]["injected"] == held["traffic"]["requests"] == held["goodput"]["judged"]
    assert held["traffic"]["offered_per_s"] == pytest.approx(free["traffic"]["offered_per_s"])
    completed = held["accounting"]["completed"]
    assert held["goodput"]["attainment"] <= completed / due
    assert held["goodput"]["cut"] == due - completed


@pytest.mark.parametrize("scheduler", ["continuous", "static", "disaggregated"])
def test_the_client_is_in_front_of_any_cluster(scheduler: str) -> None:
    clusters = {"static": ["scheduler.batch_timeout_s=0.01"], "disaggregated": []}
    tight = [
        f"scheduler={scheduler}",
        "client.max_concurrency=3",
        "client.num_warmups=2",
        "workload.requests=20",
    ]
    base = [text for text in BURST if not text.startswith("cluster.") or scheduler != "disaggregated"]
    result = run(*base, *clusters.get(scheduler, []), *tight)
    assert result.summary["accounting"]["completed"] == 20
    assert most_at_a_time(result.requests) == 3


def most_at_a_time(requests: pd.DataFrame) -> int:
    ends = np.sort((requests.sent_s + requests.e2e_s).to_numpy())
    sent_s = np.sort(requests.sent_s.to_numpy())
    return int((np.arange(1, len(sent_s) + 1) - np.searchsorted(ends, sent_s + 1e-9)).max())


# ---- num_warmups -----------------------------------------------------------------------------------


@pytest.mark.parametrize("arrivals", ["poisson", "closed_loop", "burst", "vllm_bench"])
def test_warm_ups_are_counted_apart_and_leave_no_trace(arrivals: str) -> None:
    """With one replica, which has nothing to remember, every figure and every row is the same to the bit."""
    plain, warm = (
        run(*SMALL, f"workload/arrivals={arrivals}", f"client.num_warmups={count}") for count in (0, 7)
    )
    assert [result.summary["accounting"]["warmup"] for result in (plain, warm)] == [0, 7]
    assert figures(plain) == figures(warm)
    for table in ("requests", "steps", "gaps"):
        pd.testing.assert_frame_equal(getattr(plain, table), getattr(warm, table))


def test_a_router_remembers_the_warm_ups() -> None:
    """Five requests in turn over two replicas: the next one goes to the second."""
    base = (*SMALL, "cluster.replicas=2", "router=round_robin", "workload.requests=1")
    assert run(*base).requests.replica.tolist() == [0]
    assert run(*base, "client.num_warmups=5").requests.replica.tolist() == [1]


def test_where_nothing_is_sent_nothing_warms_up() -> None:
    late = (*SMALL, "workload/arrivals=constant", "workload.arrivals.rate_rps=1", "workload.duration_s=0.5")
    assert run(*late, "client.num_warmups=5").summary["accounting"]["warmup"] == 0


# ---- api_time_s ------------------------------------------------------------------------------------


def test_api_time_is_routing_and_part_of_ttft_and_e2e() -> None:
    lone = (*SMALL, "workload.requests=1")
    plain, late = (run(*lone, f"client.api_time_s={time_s}").summary for time_s in (0, 0.125))
    for name in ("ttft_s", "e2e_s"):
        assert late["latency"][name]["mean"] - plain["latency"][name]["mean"] == pytest.approx(0.125)
    assert plain["breakdown_s"]["routing"] == 0
    assert late["breakdown_s"]["routing"] == pytest.approx(0.125)
    assert late["breakdown_s"]["queue"] == pytest.approx(plain["breakdown_s"]["queue"], abs=1e-6)
    assert late["latency"]["tpot_s"]["mean"] == pytest.approx(plain["latency"]["tpot_s"]["mean"])


@pytest.mark.parametrize("arrivals", ["constant", "burst", "closed_loop"])
def test_what_is_on_its_way_at_the_horizon_runs_and_is_not_clean(arrivals: str) -> None:
    """Sent before a horizon of 1 s, to arrive at 1.5 s or later: running, its routing not over."""
    late = (*SMALL, f"workload/arrivals={arrivals}", "client.api_time_s=1.5", "horizon_s=1.0")
    loads = {
        "constant": ["workload.arrivals.rate_rps=8"],
        "closed_loop": ["workload.arrivals.concurrency=16"],
    }
    result = run(*late, *loads.get(arrivals, []))
    accounting, requests = result.summary["accounting"], result.requests
    sent = {"constant": 8, "burst": 60, "closed_loop": 16}[arrivals]
    assert accounting["injected"] == accounting["running"] == len(requests) == sent
    assert accounting["not_sent"] == 60 - sent
    assert accounting["clean"] is False
    assert requests[["routing_s", "queue_s", "ttft_s", "e2e_s"]].isna().all().all()
    assert result.summary["traffic"]["requests"] == sent
    assert result.summary["duration_s"] == 1.0 - requests.sent_s.min()
    assert result.summary["goodput"]["cut"] == sent


# ---- keys ------------------------------------------------------------------------------------------


def test_values_out_of_bounds_are_all_listed() -> None:
    wrong = refused("client.max_concurrency=0", "client.num_warmups=-1", "client.api_time_s=-0.1")
    assert {path for path, _ in wrong} == {
        "client.max_concurrency",
        "client.num_warmups",
        "client.api_time_s",
    }


def test_a_key_in_the_wrong_place_is_told_the_right_one() -> None:
    ((_, message),) = refused("+workload.max_concurrency=4")
    assert "client.max_concurrency" in message


def test_a_run_says_with_which_client() -> None:
    client = run(*BURST, "client.max_concurrency=4", "client=openai").summary["scenario"]["client"]
    assert (client["kind"], client["max_concurrency"], client["max_retries"]) == ("client", 4, 2)


# ---- time-outs, retries, admission -----------------------------------------------------------------

STORM = (
    *SMALL,
    "workload.requests=400",
    "workload.arrivals.rate_rps=300",
    "scheduler.max_num_seqs=8",
    "client.timeout_s=1",
    "client.max_retries=2",
    "client.backoff_s=0.5",
    "admission=queue_limit",
    "admission.max_queued=40",
)


def test_a_storm_is_accounted_for_attempt_by_attempt() -> None:
    """And what a user waited is told beside latencies that are an attempt's own."""
    result = run(*STORM)
    ends, requests = result.summary["accounting"], result.requests
    again = requests[requests.attempt > 0]
    assert min(ends["dropped"]["queue_full"], ends["timed_out"], ends["completed"], ends["given_up"]) > 10
    assert ends["injected"] == ends["completed"] + ends["dropped"]["queue_full"] + ends["timed_out"]
    assert ends["injected"] - ends["retries"] == 400 == ends["completed"] + ends["given_up"]
    assert (ends["retries"], ends["retries_pending"], ends["clean"]) == (len(again), 0, False)
    assert ends["success"] == ends["completed"] / 400
    assert result.summary["traffic"]["requests"] == 400
    assert (again.client_queue_s >= 0.5 - 1e-6).all()
    assert result.summary["latency"]["e2e_s"]["max"] <= 1 + 1e-6
    assert result.summary["duration_s"] == pytest.approx(requests.ended_s.max() - requests.sent_s.min())
    assert requests.request_id.is_unique
    assert (requests.sort_values("request_id").sent_s.diff().dropna() > -1e-6).all()


def test_retries_still_to_come_at_the_horizon_are_counted() -> None:
    ends = run(*STORM, "horizon_s=1.2").summary["accounting"]
    failed = ends["timed_out"] + ends["dropped"]["queue_full"]
    assert ends["retries_pending"] > 10
    assert ends["given_up"] == failed - ends["retries"] - ends["retries_pending"]
    assert ends["injected"] - ends["retries"] + ends["not_sent"] == 400


def test_a_limit_that_none_can_meet_or_that_is_not_given_is_refused() -> None:
    wrong = refused("client.timeout_s=0.1", "client.api_time_s=0.1", "admission=ttft_slo", "slo.ttft_s=null")
    assert {path for path, _ in wrong} == {"client.timeout_s", "admission.ttft_s"}


def test_a_retry_finds_what_is_left_of_its_prompt() -> None:
    """Requests of this workload share nothing with others; so it is their own that retries find."""
    impatient = ("client.timeout_s=0.2", "client.max_retries=1", "client.backoff_s=0.05")
    result = run(*SMALL, "workload.lengths.output=64", "workload.arrivals.rate_rps=20", *impatient)
    first, retries = (result.requests.query(f"attempt {which} 0") for which in ("==", ">"))
    assert len(retries) > 10
    assert first.cached_tokens.max() == 0
    assert retries.cached_tokens.min() > 0
