"""What a reader is told beside the figures."""

import copy
from typing import Any

import pytest

from servesim.results.overload import overloaded
from tests.screen.screens import printed_from, screen, summary_of, unwrapped


def test_what_a_reader_must_know_is_noted() -> None:
    assert "real engines are slower" in screen("calibration=roofline")
    assert "preemptions" in screen("scheduler.num_gpu_blocks_override=300", "workload.arrivals.rate_rps=100")
    dropped = summary_of("scheduler.max_model_len=200")["accounting"]["dropped"]["prompt_too_long"]
    words = f"{dropped} requests dropped: the prompt leaves no room for output in max_model_len (200 tokens)"
    assert words in screen("scheduler.max_model_len=200")
    assert "cut at max_model_len (1,200 tokens)" in screen("scheduler.max_model_len=1200")
    assert "past the horizon, not sent" in screen("horizon_s=3")
    assert "of the steady part" in screen("steady=true")
    assert "whether they fit or not" in screen("ignore_capacity=true")
    drafting = screen("scheduler/speculation=mtp")
    assert "mtp, 1 token a step: 1.8" in drafting
    assert "how often drafts are right is taken as given" in drafting
    assert "3 rows out of order" in screen(trace=["3 rows out of order"])


def noted(**changes: Any) -> str:
    """Return the notes of a run whose summary says something else here and there."""
    summary = copy.deepcopy(summary_of())
    for path, value in changes.items():
        *groups, key = path.split("__")
        place = summary
        for group in groups:
            place = place[group]
        place[key] = value
    return unwrapped(printed_from(summary).partition("Notes")[2])


@pytest.mark.parametrize(
    ("without", "router", "told"),
    [
        ("scheduler=static", "kv_aware", True),
        ("scheduler.enable_prefix_caching=false", "prefix_affinity", True),
        ("scheduler.enable_prefix_caching=false", "least_outstanding", False),
        ("scheduler=continuous", "kv_aware", False),
    ],
)
def test_a_router_that_finds_nothing_in_any_cache(without: str, router: str, told: bool) -> None:
    printed = unwrapped(screen(without, f"router={router}"))
    assert (f"router {router}: no replica reuses the beginning of a prompt" in printed) is told


def test_one_is_singular() -> None:
    assert "1 request dropped: " in noted(accounting__dropped={"prompt_too_long": 1})
    assert "1 preemption" in noted(accounting__preemptions=1)
    assert "preemptions" not in noted(accounting__preemptions=1)


def test_it_is_said_whose_kernels_and_whose_host_the_step_times_are_of() -> None:
    both = unwrapped(screen())
    assert "kernels as fitted in h100-sxm-vllm (vllm 0.24.0)" in both
    host = "host time and prefill factor: vllm-0.12 (vllm 0.12.0), fitted on qwen3-32b on h100-sxm"
    assert f"{host} at 8 to 128 sequences" in both
    assert "chooses the engine of both" not in both
    mixed = unwrapped(screen("calibration=h100-sxm-sglang"))
    assert "kernels of sglang with the host time of vllm: engine_overhead=NAME chooses the engine" in mixed


def test_all_reduces_that_take_most_of_the_time_are_noted() -> None:
    wide = ("gpu=l40s", "cluster.replicas=1", "cluster.tensor_parallel_size=8")
    share = sum(summary_of(*wide)["calibration"]["operations"]["all_reduce"].values())
    assert share > 0.5
    assert f"{share:.1%} of the time is all-reduces" in unwrapped(screen(*wide))
    assert "all-reduces" not in screen()


def test_many_sequences_are_beyond_what_the_host_was_fitted_on() -> None:
    summary = summary_of("workload.requests=600", "workload.arrivals.rate_rps=500", "cluster.replicas=1")
    assert summary["calibration"]["operations"]["host"]["extrapolated"] > 0.1
    assert "of the time is outside the calibrated ranges: host" in unwrapped(printed_from(summary))


def test_ramp_and_drain_are_noted_where_they_weigh() -> None:
    steps = {"traffic__requests": 101, "traffic__offered_per_s": 2.0}  # 50 s
    assert "short run: 50 s of arrivals" in noted(**steps, latency__e2e_s__p99=5.01)
    assert "short run" not in noted(**steps, latency__e2e_s__p99=4.99)
    assert "short run" not in noted(**steps, latency__e2e_s__p99=5.01, scenario__steady=True, warmup_cut_s=1)
    assert "short run" not in noted(latency__e2e_s__p99=None)
    assert "short run: 0 s" in noted(traffic__requests=1, traffic__offered_per_s=None)
    saturated = noted(**steps, latency__e2e_s__p99=5.01, saturated=True)
    assert "saturated: more arrives than is served" in saturated
    assert "short run" not in saturated


def of_sessions(begun_for_s: float, **more: Any) -> dict[str, Any]:
    """Return what turns a run of 1,000 s into one of sessions of 20 s on average and 60 s at p95."""
    sessions = {"begun": 9, "completed": 9, "context_full": 0, "failed": 0, "unfinished": 0}
    sessions |= {"requests_meant": 5.0, "begun_for_s": begun_for_s, "first_turns": {}, "later_turns": {}}
    sessions |= {
        "requests": {"mean": 5.0},
        "duration_s": {"mean": 20.0, "p50": 9.0, "p95": 60.0, "p99": 70.0},
    }
    workload = summary_of()["scenario"]["workload"] | {"kind": "sessions", "sessions": 9, "requests": None}
    changes = {"sessions": sessions, "duration_s": 1000.0, "scenario__workload": workload, "saturated": False}
    return changes | {"traffic__offered_per_s": 0.01} | more


def test_sessions_that_mostly_ramp_up_and_drain_are_noted() -> None:
    told = noted(**of_sessions(300.0))
    assert "short run: sessions began for 300 of its 1,000 s" in told
    assert "workload.duration_s=360 steady=true in place of workload.sessions" in told
    assert "short run" not in noted(**of_sessions(990.0))
    assert "short run" not in noted(**of_sessions(300.0, scenario__steady=True))
    unsettled = noted(**of_sessions(300.0, scenario__steady=True, settled=False))
    assert "half of the run was cut: workload.duration_s=360 steady=true in place of" in unsettled


def test_a_run_without_a_steady_state_is_noted() -> None:
    assert "no steady state found" in noted(settled=False)
    assert "no steady state found" not in noted(settled=True)
    assert "no steady state found" not in noted()


def test_users_without_a_second_request_are_noted() -> None:
    closed = "workload/arrivals=closed_loop"
    assert "fewer requests (30) than users (31)" in screen(closed, "workload.arrivals.concurrency=31")
    assert "than users" not in screen(closed, "workload.arrivals.concurrency=30")


def test_a_part_of_a_schedule_is_noted() -> None:
    day = ("workload/arrivals=schedule", "workload.arrivals.period_s=40", "workload.arrivals.rates=[[0,1]]")
    hint = "of the schedule's period of 40 s sent: workload.duration_s=40 sends all of it"
    everything = "workload.requests=null"
    assert hint in unwrapped(screen(*day, "workload.requests=20"))
    assert hint in unwrapped(screen(*day, everything, "workload.duration_s=39"))
    assert hint in unwrapped(screen(*day, everything, "workload.duration_s=40", "horizon_s=39"))
    assert "period of" not in screen(*day, everything, "workload.duration_s=40")
    assert "period of" not in screen(*day, "workload.requests=200")


def test_what_became_of_those_who_hung_up_or_were_turned_away_is_told() -> None:
    printed = unwrapped(
        screen(
            "model=llama3.1-8b",
            "cluster.tensor_parallel_size=1",
            "scheduler.max_num_seqs=2",
            "client.timeout_s=4",
            "client.max_retries=1",
            "admission=ttft_slo",
            "admission.ttft_s=3",
        )
    )
    assert "given up after 4 s, 2 attempts at the most, admission by ttft_slo (3 s)" in printed
    assert "of the injected are retries; of 30 requests" in printed
    assert "requests timed out: 4 s for an answer" in printed
    assert "dropped: the first token was predicted to come later than the limit (3 s)" in printed
    assert "client queue (s)" in printed
    assert "E2E from due (s)" in printed
    assert "Load OVERLOADED (" in printed
    reasons = {"queue_full": 1}
    assert "1 request dropped: the queue of the replica was full" in noted(accounting__dropped=reasons)


def test_a_replica_with_far_more_requests_than_the_others_is_noted() -> None:
    even = [{"role": "serve", "requests": count} for count in (30, 40, 20, 30)]
    assert "busiest" not in noted(replicas=even)
    odd = [*even[:3], {"role": "serve", "requests": 150}]
    assert "the busiest replica got 150 requests, 2.5 times the mean of 4" in noted(replicas=odd)
    assert "busiest" not in noted(replicas=None)


def test_what_the_queue_order_does_not_look_at_is_told() -> None:
    tenants = {
        "a": {"priority": 1, "slack_s": 0.5, "weight": 2.0},
        "b": {"priority": 0, "slack_s": None, "weight": 1.0},
    }
    told = noted(scenario__workload__tenants=tenants)
    for key, order in (("priority", "priority"), ("slack_s", "earliest_deadline"), ("weight", "fair")):
        assert f"{key} has no effect on the order with queue_order=fcfs, only with {order}" in told
    order = {"kind": "fair"}
    told = noted(scenario__workload__tenants=tenants, scenario__scheduler__queue_order=order)
    assert told.count("no effect") == 2
    assert "no effect" not in noted(scenario__workload__tenants={"b": tenants["b"]})


def test_arrivals_past_the_horizon_are_told() -> None:
    words = "9 arrivals past the horizon"
    assert words in noted(accounting__not_sent=9)
    assert words not in noted()


def test_what_is_of_the_whole_run_says_so_beside_a_steady_part() -> None:
    summary = copy.deepcopy(summary_of())
    summary["prefill"] |= {"cached_tokens": 9, "recovered_tokens": 2, "hit_rate": 0.5}
    assert "Prefix cache 50.0% of the tokens" in unwrapped(printed_from(summary))
    summary["scenario"]["steady"] = True
    printed = unwrapped(printed_from(summary))
    assert "Prefix cache whole run: 50.0% of the tokens of prompts were found: 7 found, 2 more" in printed


@pytest.mark.parametrize(
    ("ends", "queue_s", "load"),
    [
        ({"timed_out": 9}, 30.0, "Load OVERLOADED (9 timed out); "),
        ({"timed_out": 9}, 0.0, "Load 9 timed out; "),
        ({"dropped": {"slo": 2, "queue_full": 3}}, 0.0, "Load OVERLOADED (5 rejected); "),
        ({"dropped": {"prompt_too_long": 5}}, 30.0, "Load not saturated; "),
    ],
)
def test_load_that_is_lost_after_a_long_wait_is_overload(
    ends: dict[str, Any], queue_s: float, load: str
) -> None:
    summary = copy.deepcopy(summary_of())
    summary["saturated"] = False
    summary["accounting"] |= ends
    summary["breakdown_s"]["queue"] = queue_s
    summary["overloaded"] = overloaded(summary["accounting"], summary["breakdown_s"])
    assert load in unwrapped(printed_from(summary))


def test_a_run_of_sessions_before_any_began_is_told_of_without_a_length() -> None:
    assert (
        "steady=true"
        not in screen("workload=sessions", "horizon_s=0.001", "steady=true").partition("Notes")[2]
    )
