"""Each study runs at a small size, and what it claims holds there: signs and orders, not figures."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from servesim.cli import main
from servesim.sweeps.table import read_table

OUTPUT, GOODPUT = "throughput.output_tokens_per_s_per_gpu", "goodput.requests_per_s"
USERS, RATE = "workload.arrivals.concurrency", "workload.arrivals.rate_rps"

#: Runs a study with changes, and returns its table.
Run = Callable[..., pd.DataFrame]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)

    def table(name: str, *changes: str) -> pd.DataFrame:
        assert main([f"experiment={name}", "seed=0", *changes]) == 0
        return read_table(tmp_path / "sweeps" / name)

    return table


def of(table: pd.DataFrame, column: str, *where: str) -> pd.Series:
    """Return a figure by the axes ``where``."""
    return table.set_index(list(where))[column]


def test_one_user_leaves_nearly_all_arithmetic_idle(run: Run) -> None:
    table = run("one_user", f"{USERS}=1,16", "workload.requests=48")
    compute = of(table, "utilisation.compute", "variant", "calibration", USERS)
    bandwidth = of(table, "utilisation.bandwidth", "variant", "calibration", USERS)
    ridge = 989.4e12 / 3.35e12  # FLOPs per byte; a decode step for one user has about one
    assert compute["answers", "roofline", 1] == pytest.approx(1 / ridge, rel=0.05)
    assert bandwidth["answers", "roofline", 1] == pytest.approx(1, abs=0.02)
    assert compute["answers", "auto", 1] < compute["answers", "roofline", 1]
    assert compute["prompts", "auto", 1] > 100 * compute["answers", "auto", 1]
    assert compute["answers", "auto", 16] > 10 * compute["answers", "auto", 1]


def test_continuous_batching_beats_static_at_equal_load(run: Run) -> None:
    table = run("batching_frontier", f"{RATE}=2", "workload.requests=150")
    good, ttft = (of(table, name, "variant") for name in (GOODPUT, "latency.ttft_s.p99"))
    assert good["continuous"] > 2 * max(good["static"], good["static of 256"])
    assert ttft["continuous"] < ttft["static"] / 10


def test_fair_shares_spare_the_light_tenant_and_cost_no_throughput(run: Run) -> None:
    table = run("fairness", f"{RATE}=32", "workload.requests=500", "scheduler.max_num_seqs=32")
    light, even = (
        of(table, f"fairness.{name}", "variant") for name in ("tenants.light.ttft_s.p99", "jain_index")
    )
    assert light["fair"] < light["fcfs"] / 4
    assert even["fair"] > 0.9 > 0.7 > even["fcfs"]
    output = of(table, OUTPUT, "variant")
    assert output["fair"] == pytest.approx(output["fcfs"], rel=0.1)


def test_small_chunks_spare_the_decodes_and_delay_the_prompts(run: Run) -> None:
    table = run("batching_frontier", f"{RATE}=16", "workload.requests=600")
    ttft, tpot = (of(table, f"latency.{name}_s.p99", "variant") for name in ("ttft", "tpot"))
    assert tpot["small chunks"] < tpot["continuous"]
    assert ttft["small chunks"] > ttft["continuous"]


@pytest.mark.slow
def test_continuous_batching_serves_every_traffic_best_within_a_relaxed_slo(run: Run) -> None:
    table = run("three_schedulers", "workload.requests=1000", "experiment.load.points=6")
    best = table.groupby(["workload/lengths", "variant"])[GOODPUT].max().unstack()
    assert (best.idxmax(axis=1) == "continuous").all()
    assert (best.static < best.disaggregated).all()


def test_prefill_on_its_own_spares_the_decodes(run: Run) -> None:
    changes = (f"{RATE}=8", "workload.requests=200", "slo.tpot_s=0.025")
    table = run("pd_ratio", *changes)
    tpot = of(table, "latency.tpot_s.p99", "workload/lengths", "variant")
    assert tpot["code", "3:1"] < tpot["code", "together"]
    assert tpot["conversation", "2:2"] < tpot["conversation", "together"]


@pytest.mark.slow
def test_disaggregation_pays_only_within_a_tight_limit_and_in_the_right_ratio(run: Run) -> None:
    table = run("pd_ratio", "workload.requests=600", "workload/lengths=conversation")
    best = table.groupby(["slo.tpot_s", "variant"])[GOODPUT].max()
    assert best[0.025, "2:2"] > best[0.025, "together"] > best[0.025, "1:3"]
    assert best[0.05, "2:2"] < best[0.05, "together"]


def test_wide_engines_are_fast_and_narrow_ones_carry_more(run: Run) -> None:
    table = run("tp_choice", f"{RATE}=1,24", "workload.requests=800")
    tpot = of(table, "latency.tpot_s.p50", "variant", RATE)
    output = of(table, OUTPUT, "variant", RATE)
    assert tpot["1 of TP8", 1] < tpot["2 of TP4", 1] < tpot["4 of TP2", 1]
    assert output["1 of TP8", 24] < output["2 of TP4", 24] < output["4 of TP2", 24]


def test_fewer_bits_buy_most_where_bandwidth_binds(run: Run) -> None:
    table = run("quantisation", f"{USERS}=1,64", "workload.requests=256")
    tpot = of(table, "latency.tpot_s.p50", "variant", USERS)
    gain = {name: tpot["bf16", 1] / tpot[name, 1] for name in ("fp8", "int4")}
    assert 1 < gain["fp8"] < 2 < 4 / gain["int4"]
    assert gain["int4"] > tpot["bf16", 64] / tpot["int4", 64]


def test_guessing_helps_one_user_and_hurts_many(run: Run) -> None:
    table = run("speculation", f"{USERS}=1,256")
    output = of(table, OUTPUT, "variant", USERS)
    gain = {name: output[name, 1] / output["none", 1] for name in ("ngram", "8B draft", "eagle, 7 tokens")}
    assert min(gain.values()) > 1.2
    assert gain["eagle, 7 tokens"] == max(gain.values())
    shorter = [output[name, 256] for name in ("eagle, 7 tokens", "eagle", "none")]
    assert shorter == sorted(shorter)
    assert max(output["ngram", 256], output["8B draft", 256]) < output["none", 256]


def test_memory_is_full_before_arithmetic_is(run: Run) -> None:
    table = run("kv_wall", "workload/lengths=long_context", f"{USERS}=16,64", "workload.requests=256")
    kv, compute = (of(table, f"utilisation.{name}", "variant", USERS) for name in ("kv_cache", "compute"))
    output, ttft = (of(table, name, "variant", USERS) for name in (OUTPUT, "latency.ttft_s.p50"))
    assert kv["H100", 64] > 0.95 > 0.7 > compute["H100", 64]
    assert output["H100", 64] == pytest.approx(output["H100", 16], rel=0.15)
    assert ttft["H100", 64] > 10 * ttft["H100", 16]
    assert output["H200", 64] > output["H100", 64]
    assert output["H100 with FP8 KV", 64] == pytest.approx(output["H200", 64], rel=0.1)


def test_the_newest_gpu_is_the_fastest_and_idle_ones_are_dear(run: Run) -> None:
    table = run("gpu_frontier", f"{RATE}=1,16", "workload.requests=300")
    tpot = of(table, "latency.tpot_s.p50", "gpu", RATE)
    cost = of(table, "cost.usd_per_million_output_tokens", "gpu", RATE)
    assert tpot["b200-sxm", 1] < tpot["h200-sxm", 1] < tpot["h100-sxm", 1]
    assert tpot["h100-sxm", 1] < tpot["a100-sxm-80gb", 1] < tpot["l40s", 1]
    assert cost.xs(1, level=RATE).idxmin() == "l40s"
    assert cost.xs(16, level=RATE).idxmin() in {"h100-sxm", "h200-sxm"}


def test_what_is_found_is_not_computed(run: Run) -> None:
    """The more is found, the sooner come first tokens; what fits into the cache is found most."""
    table = run("prefix_reuse", f"{RATE}=2", "workload.requests=400")
    hits, ttft = (of(table, name, "variant") for name in ("prefill.hit_rate", "latency.ttft_s.mean"))
    assert hits["no caching"] == 0 < hits["1000 prompts"] < hits["300 prompts"] < hits["1 prompt"] < 3 / 3.5
    assert ttft["1 prompt"] < ttft["no caching"] / 3
    by_hits = ttft[hits.sort_values().index]
    assert by_hits.is_monotonic_decreasing


def test_agents_are_cheaper_where_the_router_knows_what_is_cached(run: Run) -> None:
    small = ("model=llama3.1-8b", "cluster.tensor_parallel_size=1", "workload.requests=400")
    table = run("agentic", f"{USERS}=24", *small)
    usd, hits = (
        of(table, name, "variant") for name in ("cost.usd_per_million_output_tokens", "prefill.hit_rate")
    )
    assert hits["no prefix caching"] == 0 < hits["round robin"] < hits["prefix affinity"]
    assert usd["prefix affinity"] < usd["round robin"] < usd["no prefix caching"]


def test_tiers_that_hold_all_come_near_an_endless_gpu_and_slow_ones_do_not(run: Run) -> None:
    table = run("kv_tiers", f"{USERS}=64", "workload.requests=1000", "workload.lengths.input=4000")
    ttft, usd, computed = (
        of(table, name, "variant")
        for name in ("latency.ttft_s.mean", "cost.usd_per_million_output_tokens", "prefill.computed_tokens")
    )
    assert ttft.idxmin() == computed.idxmin() == "endless GPU"
    assert computed["GPU alone"] > 4 * computed["host and store"]
    assert computed["host and store"] == pytest.approx(computed["endless GPU"], rel=0.05)
    assert usd["host and store"] == pytest.approx(usd["endless GPU"], rel=0.05)
    assert usd["host and store"] < usd["GPU alone"] / 1.5
    assert ttft["GPU alone"] > ttft["slow store"] > 5 * ttft["host and store"]


def test_swapping_beats_recomputing_over_pcie_and_not_block_by_block(run: Run) -> None:
    table = run("preemption", f"{USERS}=128", "workload.requests=400")
    output, computed = (of(table, name, "variant") for name in (OUTPUT, "prefill.computed_tokens"))
    assert output["swap, 51 GB/s"] > output["recompute"] > output["swap, 6.4 GB/s"] > output["swap, 3.2 GB/s"]
    assert output["swap, 13 GB/s"] == pytest.approx(output["recompute"], rel=0.01)
    assert computed["recompute"] > 2 * computed["swap, 51 GB/s"]


def test_small_shared_steps_have_early_first_tokens_and_small_gaps(run: Run) -> None:
    table = run("prefill_policy", f"{RATE}=14", "workload.requests=800")
    ttft, gap = (of(table, f"latency.{name}_s.p99", "variant") for name in ("ttft", "itl"))
    assert ttft.idxmin() == gap.idxmax() == "prefill first"
    assert ttft.idxmax() == "decode first"
    shared = [f"stall-free{size}" for size in (", 512 tokens", ", 2,048 tokens", "")]
    assert ttft[shared[0]] > ttft[shared[1:]].max()
    assert gap[shared].is_monotonic_increasing


def test_orders_choose_who_waits_and_only_those_by_length_how_long(run: Run) -> None:
    table = run("queue_order", f"{RATE}=13", "workload.duration_s=300")
    mean, hurried, patient = (
        of(table, name, "variant")
        for name in (
            "latency.ttft_s.mean",
            "fairness.tenants.hurried.ttft_s.p99",
            "fairness.tenants.patient.ttft_s.p99",
        )
    )
    blind = mean[["fcfs", "priority", "earliest deadline"]]
    assert blind.max() < 1.05 * blind.min()
    assert mean["shortest prompt"] < 0.8 * blind.min()
    assert hurried["priority"] < hurried["fcfs"] / 3
    assert patient["priority"] > patient["fcfs"]


def test_retries_end_all_work_and_a_short_queue_saves_it(run: Run) -> None:
    table = run("overload", f"{RATE}=24", "workload.duration_s=120")
    good, done = (of(table, name, "variant") for name in (GOODPUT, "throughput.requests_per_s"))
    assert min(good["queue of 16"], good["TTFT below 1 s"]) > 14
    assert max(good["patient clients"], good["time-outs and retries"], good["queue of 64"]) < 1
    assert done["queue of 64"] == pytest.approx(done["patient clients"], rel=0.1)
    assert done["time-outs and retries"] < done["time-outs"] < 0.8 * done["patient clients"]
    counts = {
        name: of(table, f"accounting.{name}", "variant")
        for name in ("injected", "retries", "completed", "given_up", "timed_out")
    }
    assert (counts["injected"] - counts["retries"] == counts["completed"] + counts["given_up"]).all()
    assert (counts["completed"] + counts["timed_out"] <= counts["injected"]).all()
