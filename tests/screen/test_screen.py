"""What is printed, from summaries of real runs."""

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from servesim import load, run
from servesim.screen.comparison import print_comparison
from servesim.screen.figures import dollars, number, percent, typed
from servesim.screen.progress import progress_bar
from servesim.screen.summary import print_summary


def screen(*overrides: str, **more: Any) -> str:
    out = Console(file=io.StringIO(), width=100)
    print_summary(run(load("workload.requests=30", *overrides)).summary, out, **more)
    return out.file.getvalue()  # type: ignore[attr-defined]


def row(printed: str, label: str) -> list[str]:
    (line,) = [line for line in printed.splitlines() if label in line]
    return line.partition(label)[2].split()


def test_the_figures_are_those_of_the_summary() -> None:
    summary = run(load("workload.requests=30")).summary
    printed = screen()
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
    assert sum(terms) == pytest.approx(float(row(printed, "KV cache  ")[0]), abs=0.03)


def test_two_pools_stand_side_by_side() -> None:
    printed = screen("scheduler=disaggregated", "cluster.prefill.gpu=h200-sxm", "cluster.decode.replicas=2")
    assert "4 x h200-sxm and 8 x h100-sxm" in printed
    assert "1 prefill replica of 4 x h200-sxm and 2 decode replicas of 4 x h100-sxm" in " ".join(
        printed.split()
    )
    assert len(row(printed, "KV blocks of 16 tokens, per replica")) == 2


def test_a_run_in_which_nothing_finishes_prints_no_figures_but_its_account() -> None:
    printed = screen("horizon_s=0.0001", "workload.arrivals.rate_rps=1e6")
    assert "NOT CLEAN" in printed
    assert row(printed, "TTFT (ms)") == ["0", *"------"]
    assert "nan" not in printed


def test_what_a_reader_must_know_is_noted() -> None:
    assert "real engines are slower" in screen("calibration=roofline")
    assert "preemptions" in screen("scheduler.num_gpu_blocks_override=300", "workload.arrivals.rate_rps=100")
    assert "requests dropped: prompt too long" in screen("scheduler.max_model_len=200")
    assert "cut at max_model_len" in screen("scheduler.max_model_len=1200")
    assert "arrivals past the horizon, not sent" in screen("horizon_s=3")
    assert "of the steady part" in screen("steady=true")
    assert "whether they fit or not" in screen("ignore_capacity=true")
    assert "3 rows out of order" in screen(notes=["3 rows out of order"])


def test_the_traffic_is_told() -> None:
    assert "constant (rate_rps=4.0)" in screen("workload/arrivals=constant")
    closed = screen("workload/arrivals=closed_loop", "workload.arrivals.concurrency=3")
    assert "closed_loop (concurrency=3)" in closed
    assert "closed loop;" in closed
    assert "schedule (" in screen("workload/arrivals=schedule")


def test_a_target_is_met_or_missed() -> None:
    assert "TTFT <= 100 s (target 99%: met)" in screen("slo.ttft_s=100", "slo.tpot_s=null")
    assert "(target 50%: MISSED)" in screen("slo.ttft_s=1e-9", "slo.attainment=0.5")
    assert "no limits given" in screen("slo=batch")


def test_files_and_paths_are_printed_as_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "[red]"
    folder.mkdir()
    (folder / "summary.json").touch()
    printed = "".join(line.strip() for line in screen(folder=folder).splitlines()[-3:])
    assert "[red]" in printed
    assert "summary.json" in printed


def test_runs_are_compared_row_by_row() -> None:
    out = Console(file=io.StringIO(), width=100)
    summary = run(load("workload.requests=30")).summary
    print_comparison([("0", "a=[b]", summary), ("1", "a=2", None)], out, "runs/x/<run>/")
    lines = out.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert lines[2].split()[:2] == ["0", "a=[b]"]
    assert lines[2].split()[-1] == ("saturated" if summary["saturated"] else "clean")
    assert lines[3].split() == ["1", "a=2", *"-------", "error"]
    assert lines[4] == "Files: runs/x/<run>/"


def test_figures_have_three_digits_and_their_thousands_marked() -> None:
    assert [number(value) for value in (None, 0.0, 0.01234, 12.34, 999.9, 1234567.8)] == [
        *("-", "0", "0.0123", "12.3"),
        *("1,000", "1,234,568"),
    ]
    assert [dollars(value) for value in (None, 0.1234, 12.345, 12345.6)] == [
        "-",
        "$0.12",
        "$12.35",
        "$12,345.60",
    ]
    assert [percent(value) for value in (None, 0.1234)] == ["-", "12.3%"]
    assert [typed(value) for value in (None, True, 3, "x", [1, 2])] == ["null", "true", "3", "x", "2 rows"]


def bar(patience_s: float, terminal: bool) -> str:
    out = Console(file=io.StringIO(), force_terminal=terminal, width=100)
    with progress_bar(200, out, patience_s) as tell:
        tell(50)
        tell(120)
    return out.file.getvalue()  # type: ignore[attr-defined]


def test_the_bar_waits_for_patience_to_end_and_for_somebody_to_watch() -> None:
    assert "120/200" in bar(0, terminal=True)
    assert bar(60, terminal=True) == ""
    assert bar(0, terminal=False) == ""
