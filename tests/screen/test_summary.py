"""What is printed of one run, from summaries of real runs."""

import copy
from pathlib import Path

import pytest

from servesim import load
from servesim.screen.figures import dollars, number, percent, rounded_percent
from tests.screen.screens import DISAGGREGATED, printed_from, row, screen, summary_of, unwrapped


def test_the_figures_are_those_of_the_summary() -> None:
    summary, printed = summary_of(), screen()
    ttft_s = summary["latency"]["ttft_s"]
    figures = (ttft_s[name] for name in ("mean", "p50", "p90", "p95", "p99", "max"))
    assert row(printed, "TTFT (ms)") == ["30", *(number(value, 1e3) for value in figures)]
    rates = summary["throughput"]
    assert row(printed, "output tokens/s") == [
        number(rates["output_tokens_per_s"]),
        number(rates["output_tokens_per_s_per_gpu"]),
    ]
    assert dollars(summary["cost"]["usd_per_million_output_tokens"]) in printed
    assert f"{number(summary['energy']['joules_per_output_token'])} J per output token" in printed
    mean_w = summary["energy"]["joules"] / summary["window_s"] / 8
    h100 = load().gpu
    assert h100.idle_w < mean_w < h100.max_w
    assert f"{number(mean_w)} W per GPU (modelled: a100, fitted on measured power)" in printed
    assert "W per GPU (modelled: assumed, not fitted)" in screen("board_power=assumed")


def test_the_memory_sheet_is_a_sum() -> None:
    printed = screen()
    labels = (
        "GPU memory (driver)",
        "gpu_memory_utilization 0.9",
        "weights  ",
        "activations",
        "runtime (CUDA, NCCL)",
    )
    terms = [float(row(printed, label)[0]) for label in labels]
    assert terms[0] == 85.03  # 81,089 MiB
    assert sum(terms) == pytest.approx(float(row(printed, "KV cache  ")[0]), abs=0.03)


def test_two_pools_stand_side_by_side() -> None:
    printed = screen(*DISAGGREGATED)
    assert "4 x h200-sxm and 8 x h100-sxm" in printed
    words = unwrapped(printed)
    assert (
        "1 prefill replica of 4 x h200-sxm and 2 decode replicas of 4 x h100-sxm (tensor parallel)" in words
    )
    transfer = summary_of(*DISAGGREGATED)["transfer"]
    bandwidth, latency = transfer["bandwidth_bytes_per_s"] / 1e9, transfer["latency_s"] * 1e6
    assert 25 < bandwidth < 50
    assert f"KV over nic, {number(bandwidth)} GB/s per GPU, {number(latency)} us latency" in words
    assert len(row(printed, "KV blocks of 16 tokens, per replica")) == 2
    roles = summary_of(*DISAGGREGATED)["utilisation"]["roles"]
    for role in ("prefill", "decode"):
        assert row(printed, f"{role}: ")[:2] == [rounded_percent(roles[role]["busy"]), "busy,"]


def test_a_replica_on_one_gpu_is_not_parallel() -> None:
    printed = screen("model=llama3.1-8b", "cluster.replicas=8", "cluster.tensor_parallel_size=1")
    assert "8 replicas of 1 x h100-sxm, router" in printed
    assert "tensor parallel" not in printed


def test_a_router_is_told_with_what_is_set_of_it() -> None:
    assert "router least_outstanding Scheduler" in unwrapped(screen())
    told = unwrapped(screen("router=session_sticky", "router.max_imbalance=0", "router.delay_s=0.5"))
    assert "router session_sticky (delay_s=0.5, max_imbalance=0, remembers=100000) Scheduler" in told


def test_the_mean_request_is_taken_apart() -> None:
    parts = unwrapped(screen(*DISAGGREGATED)).partition("Time mean ms: ")[2].partition(" E2E")[0]
    names = "queue prefill transfer decode_queue decode"
    spent = summary_of(*DISAGGREGATED)["breakdown_s"]
    told = " + ".join(f"{name.replace('_', ' ')} {number(spent[name], 1e3)}" for name in names.split())
    assert parts == f"{told} = {number(summary_of(*DISAGGREGATED)['latency']['e2e_s']['mean'], 1e3)}"


def test_memory_tells_what_is_given_and_what_follows() -> None:
    assert row(screen(), "max_model_len (auto), tokens") == ["131,072"]
    printed = screen("scheduler.num_gpu_blocks_override=300", "scheduler.max_model_len=4000")
    assert row(printed, "KV blocks of 16 tokens, per replica, as given") == ["300"]
    assert row(printed, "max_model_len, tokens") == ["4,000"]


def test_prices_are_told() -> None:
    assert "8 GPUs at $4.00 per GPU-hour: $32.00 per hour" in screen()
    assert "8 GPUs at $0.50 per GPU-hour: $4.00 per hour" in screen("pricing.usd_per_gpu_hour=0.5")
    usd = [summary_of(*DISAGGREGATED)["scenario"]["cluster"]["prefill"]["gpu"]["usd_per_hour"], 4.0]
    each = f"4 h200-sxm at {dollars(usd[0])} and 8 h100-sxm at {dollars(usd[1])} per GPU-hour"
    assert f"{each}: {dollars(4 * usd[0] + 8 * usd[1])} per hour" in unwrapped(screen(*DISAGGREGATED))
    window_s = number(summary_of("steady=true")["window_s"])
    assert f"the steady {window_s} s: $" in unwrapped(screen("steady=true"))
    one = ("model=llama3.1-8b", "cluster.replicas=1", "cluster.tensor_parallel_size=1")
    assert "1 GPU at $4.00 per GPU-hour: $4.00 per hour" in screen(*one)


def test_a_run_in_which_nothing_finishes_prints_no_figures_but_its_account() -> None:
    printed = screen("horizon_s=0.0001", "workload.arrivals.rate_rps=1e6")
    assert "NOT CLEAN" in printed
    assert row(printed, "TTFT (ms)") == ["0", *"------"]
    assert "nan" not in printed


def test_the_traffic_is_told_as_it_was_asked() -> None:
    assert "constant (rate_rps=4.0)" in screen("workload/arrivals=constant")
    closed = screen("workload/arrivals=closed_loop", "workload.arrivals.concurrency=3")
    assert "/s: closed_loop (concurrency=3)" in closed
    assert "requests sent at" in closed
    assert "closed loop;" in closed
    thinking = ("workload/arrivals=closed_loop", "workload.arrivals.think_time_s=1.5")
    asked = "closed_loop (concurrency=64, think_time_s=1.5, think_time=constant)"
    assert asked in unwrapped(screen(*thinking))
    assert "schedule (" in screen("workload/arrivals=schedule")
    cut = ("workload/arrivals=constant", "workload/lengths=fixed", "horizon_s=2", "steady=true")
    asked = "8 requests offered at 4/s: constant (rate_rps=4.0); 512 tokens in and 256 out on average"
    assert asked in unwrapped(screen(*cut))


def test_what_waits_in_the_client_is_told_apart() -> None:
    burst = ("workload/arrivals=burst", "client.num_warmups=2")
    held = screen(*burst, "client.max_concurrency=7")
    assert "burst, 7 unanswered at the most;" in unwrapped(held)
    assert row(held, "client queue (s)")[0] == "30"
    assert "2 warm-up requests before, left out of all figures" in unwrapped(held)
    assert "all requests at once;" in held
    free = screen(*burst)
    assert "client queue" not in free
    assert "unanswered" not in free


def test_what_the_client_still_holds_at_the_horizon_is_told() -> None:
    cut = ("workload/arrivals=burst", "client.max_concurrency=7", "horizon_s=0.2")
    assert summary_of(*cut)["accounting"]["client_queued"] == 23
    assert "NOT CLEAN" in screen(*cut)
    assert "23 requests still held back in the client at the horizon" in unwrapped(screen(*cut))


@pytest.mark.parametrize(
    ("scale", "rate_rps", "offered_per_s", "words"),
    [
        (1, None, 4.0, "t.csv at its recorded rate;"),
        (0.5, None, 4.0, "t.csv at 0.5 times its recorded rate;"),
        (1, 4.0, 4.0, "t.csv as a Poisson process;"),
        (1, None, None, "t.csv, all at once;"),
    ],
)
def test_the_rate_of_a_trace_is_told(
    scale: float, rate_rps: float | None, offered_per_s: float | None, words: str
) -> None:
    summary = copy.deepcopy(summary_of())
    trace = {"kind": "trace", "path": "t.csv", "rate_scale": scale, "rate_rps": rate_rps, "at_once": False}
    summary["scenario"]["workload"] = trace
    summary["traffic"]["offered_per_s"] = offered_per_s
    assert words in unwrapped(printed_from(summary))
    summary["scenario"]["workload"] = trace | {"at_once": True, "rate_rps": None}
    assert "t.csv, all at once;" in unwrapped(printed_from(summary))


def test_a_target_is_met_or_missed() -> None:
    assert "TTFT <= 100 s (target 99%: met)" in screen("slo.ttft_s=100", "slo.tpot_s=null")
    assert "100.00% have TTFT <= 0.5 s and TPOT <= 0.05 s (target 99.99%: met)" in screen(
        "slo.attainment=0.9999"
    )
    assert "(target 50%: MISSED)" in screen("slo.ttft_s=1e-9", "slo.attainment=0.5")
    assert "no limits given" in screen("slo=batch")


def test_files_and_paths_are_printed_as_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "[red]"
    folder.mkdir()
    (folder / "summary.json").touch()
    printed = "".join(line.strip() for line in screen(folder=folder).splitlines()[-3:])
    assert "[red]" in printed
    assert "summary.json" in printed


def test_requests_cut_at_the_horizon_count_as_missed_and_it_is_said() -> None:
    summary = summary_of("horizon_s=3")
    cut = summary["accounting"]["running"] + summary["accounting"]["queued"]
    assert summary["goodput"]["cut"] == cut > 1
    assert f"{cut} requests cut at the horizon count as missed" in unwrapped(screen("horizon_s=3"))
    assert "cut at the horizon" not in screen()


def test_a_dialect_takes_the_place_of_the_plain_latencies_with_its_definitions() -> None:
    summary, printed = summary_of("metrics=aiperf"), screen("metrics=aiperf")
    ttft = summary["metrics"]["values"]["time_to_first_token"]
    shown = (ttft[name] for name in ("avg", "min", "max", "p99", "p90", "p50", "std"))
    assert row(printed, "time_to_first_token (ms)") == [number(value) for value in shown]
    assert "TPOT (ms)" not in printed
    lines = [line.split("  ")[0] for line in printed.splitlines()]
    assert lines.index("Definitions") > lines.index("Notes")
    for name, said in summary["metrics"]["definitions"].items():
        assert f"{name}: {said['meaning']}" in unwrapped(printed)
        assert f"({said['unit']})" in printed


def test_the_plain_dialect_adds_nothing() -> None:
    assert "metrics" not in summary_of("metrics=vllm")
    assert screen("metrics=vllm") == screen()


def test_tenants_and_classes_have_their_own_tables() -> None:
    options = (
        "workload.tenants.a.share=1",
        "workload.tenants.b.share=3",
        "workload.tenants.b.priority=1",
        "scheduler/queue_order=fair",
    )
    printed, summary = screen(*options), summary_of(*options)
    assert "queue_order=fair (input_weight=1.0, output_weight=2.0)" in unwrapped(printed)
    tenant, best = summary["fairness"]["tenants"]["a"], summary["classes"]["0"]
    outcome, _, service = printed.split("Tenants")[1].split("Cost")[0].partition("service/s  ")
    assert row(outcome, "            a  ")[:4] == [
        *(str(tenant["requests"]), str(tenant["completed"]), percent(tenant["attainment"])),
        number(tenant["ttft_s"]["mean"], 1e3),
    ]
    assert row(service, "            a  ")[0] == number(tenant["service_per_s"])
    assert row(printed, "            0  ")[0] == str(best["requests"]) == str(tenant["requests"])
    assert summary["fairness"]["jain_index"] is None
    assert "all hardly ever wait at the same replica" in printed
    assert "weight" not in printed.split("Tenants")[1].split("Cost")[0]
    assert not any(heading in screen() for heading in ("Tenants  ", "Classes  ", "queue_order"))


def test_weights_are_told_where_tenants_have_different_ones() -> None:
    row = {"requests": 5, "completed": 3, "dropped": 0, "timed_out": 2, "attainment": None}
    row |= {"ttft_s": dict.fromkeys(("mean", "p50", "p99"), 1.0)}
    row |= {"service_per_s": 7.0, "backlogged_service_per_s": 8.0}
    tenants = {"a": {**row, "weight": 2.0}, "b": {**row, "weight": 1.0}}
    fairness = {"jain_index": 0.9, "backlogged_s": 3.0, "number": 2, "tenants": tenants}
    printed = unwrapped(printed_from({**summary_of(), "fairness": fairness}))
    assert "timed TTFT (ms) sent completed out mean p50 p99 a 5 3 2 1,000 1,000 1,000" in printed
    assert "weight of the cluster while all wait there a 2 7 8" in printed
    assert "Jain's index 0.9 (1: even) of service / weight in the 3 replica-seconds in which all" in printed
    assert "service: input + 2 x output tokens, of requests that never completed, too" in printed
