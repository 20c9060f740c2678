"""Several runs side by side."""

import copy
import io
from typing import Any

import pytest
from rich.console import Console

from servesim.screen.comparison import print_comparison
from servesim.screen.figures import money, number
from tests.screen.screens import summary_of

#: An accounting with next to nothing in it.
NOT_CLEAN = {"clean": False, "timed_out": 0, "dropped": {}, "retries": 0}


def compared(width: int, *runs: tuple[str, list[str], dict[str, Any] | None]) -> list[str]:
    out = Console(file=io.StringIO(), width=width)
    print_comparison(runs, out, "runs/x/<run>/")
    return out.file.getvalue().splitlines()  # type: ignore[attr-defined, no-any-return]


def table(lines: list[str]) -> list[str]:
    """Return the lines of the table alone."""
    first = lines.index("") + 1
    return lines[first : lines.index("", first)]


def test_runs_are_compared_row_by_row() -> None:
    lines = compared(100, ("0", ["a=[b]"], summary_of()), ("1", [], None))
    assert lines[:4] == ["0  a=[b]", "1  as it is", "All have weights fp8, KV cache bf16", ""]
    latency, cost = summary_of()["latency"], summary_of()["cost"]
    times = [number(latency[name][p], 1e3) for name in ("ttft_s", "tpot_s") for p in ("p50", "p99")]
    assert lines[7].split() == [
        "0",
        *times,
        number(summary_of()["throughput"]["output_tokens_per_s_per_gpu"]),
        "100.0%",
        money(cost["usd_per_million_output_tokens"]),
        *("8", "32.00", "met"),
    ]
    assert lines[8].split() == ["1", *"---------", "error"]
    assert lines[-1] == "Files: runs/x/<run>/"


def test_what_there_is_to_say_of_several_runs_is_said_once_below_them() -> None:
    one, other, tiers = (copy.deepcopy(summary_of()) for _ in range(3))
    tiers["offload"] = {"loaded_tokens": 300}
    tiers["prefill"] |= {"cached_tokens": 100, "computed_tokens": 400}
    runs = [("0", [], one), ("1", [], other), ("2", [], tiers), ("3", [], None), ("4", [], None)]
    out = Console(file=io.StringIO(), width=100)
    print_comparison(runs, out, errors=dict.fromkeys("34", "a.b = 1: is\n  " + "wrong " * 99))
    lines = out.file.getvalue().splitlines()  # type: ignore[attr-defined]
    first, *rest = lines[lines.index(table(lines)[-1]) + 2 :]
    assert first.startswith("runs 3 and 4 failed: a.b = 1: is wrong wrong")
    assert len(first) < 300
    assert rest == [
        "runs 0 and 1 went exactly the same way: what sets them apart has no effect there",
        "$ are those of the GPUs: the host memory and the store of KV tiers add nothing to them",
        "all runs: throughput and $ include ramp and drain: more requests, or steady=true",
    ]
    assert [line.split()[-2] for line in table(lines)[3:6]] == ["0.0%", "0.0%", "50.0%"]


def test_overrides_that_do_not_fit_into_a_line_are_never_split() -> None:
    values = [f"key={letter * 30}" for letter in "abc"] + ["path=" + 60 * "x y"]
    lines = compared(80, ("12", values, summary_of()))
    assert lines[:3] == [f"12  {values[0]} {values[1]}", f"    {values[2]}", f"    {values[3]}"]


def test_a_comparison_has_room_in_80_columns() -> None:
    summary = copy.deepcopy(summary_of("slo.ttft_s=1e-9"))
    summary["saturated"] = True
    summary["latency"]["ttft_s"].update(p50=12.345, p99=12.345)
    summary["throughput"]["output_tokens_per_s_per_gpu"] = 1234.0
    lines = compared(80, *((str(number), [f"seed={number}"], summary) for number in range(12)))
    assert max(map(len, table(lines))) <= 80
    assert all(line == line.rstrip() for line in lines)
    usd = money(summary["cost"]["usd_per_million_output_tokens"])
    assert table(lines)[-1].endswith(f"1,234   0.0% {usd}    8 32.00 MISSED, saturated")


def test_weights_and_gpus_are_told_where_they_differ() -> None:
    small = ("model=llama3.1-8b", "cluster.tensor_parallel_size=1", "cluster.replicas=1")
    runs = [("0", [], summary_of()), ("1", [], summary_of(*small)), ("2", [], None)]
    heading, *rows = table(compared(120, *runs))[-4:]
    assert heading.split()[:2] == ["#", "weights"]
    assert [row.split()[:2] for row in rows] == [["0", "fp8"], ["1", "bf16"], ["2", "-"]]
    other = ("3", [], summary_of("gpu=h200-sxm"))
    heading, *rows = table(compared(120, runs[0], other))[-3:]
    assert heading.split()[:2] == ["#", "GPU"]
    assert [row.split()[:2] for row in rows] == [["0", "h100-sxm"], ["3", "h200-sxm"]]


def test_what_has_no_effect_in_any_run_is_told_once() -> None:
    idle, heeded = (copy.deepcopy(summary_of()) for _ in range(2))
    for summary in (idle, heeded):
        summary["scenario"]["workload"]["tenants"] = {"a": {"priority": 1}}
    heeded["scenario"]["scheduler"]["queue_order"] = {"kind": "priority"}
    pairs = [[("0", [], idle), ("1", [], other), ("2", [], None)] for other in (idle, heeded)]
    told = [" ".join(compared(200, *pair)) for pair in pairs]
    assert [text.count("the tenants' priority has no effect") for text in told] == [1, 0]


def test_what_only_some_runs_have_gets_a_column() -> None:
    plain = copy.deepcopy(summary_of())
    other = copy.deepcopy(plain)
    other["prefill"] |= {"cached_tokens": 100, "computed_tokens": 300}
    other["accounting"] |= {"timed_out": 3, "success": 0.9, "retries": 1234}
    other["speculation"] = {"mean_accepted_length": 2.5}
    tenants: dict[str, Any] = {"a": {"ttft_s": {"p99": 0.2}}, "b": {"ttft_s": {"p99": 0.3}}}
    other["fairness"] = {"jain_index": 0.5, "tenants": tenants}
    lines = compared(100, ("0", [], plain), ("1", [], other), ("2", [], None))
    assert max(map(len, table(lines))) <= 100
    assert "All have 8 GPUs at $32.00 per hour" in lines
    assert table(lines)[-4].split()[-7:] == ["saved", "served", "retries", "step", "a", "b", "outcome"]
    assert table(lines)[-3].split()[-7:-1] == ["0.0%", "100.0%", "0", "1", "-", "-"]
    assert table(lines)[-2].split()[-7:-1] == ["25.0%", "90.0%", "1,234", "2.5", "200", "300"]
    tenants |= {"c": {}, "d": {}}
    lines = compared(100, ("0", [], plain), ("1", [], other))
    assert [line.split()[-2] for line in table(lines)[-2:]] == ["-", "0.5"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "met"),
        ({"saturated": True}, "met, saturated"),
        ({"goodput": {"attainment": None, "met": None}}, "clean"),
        ({"goodput": {"attainment": 0.5, "met": False}}, "MISSED"),
        ({"accounting": NOT_CLEAN, "saturated": True}, "met, NOT CLEAN"),
    ],
)
def test_the_outcome_says_what_is_not_as_it_should_be(changes: dict[str, Any], words: str) -> None:
    lines = compared(100, ("0", [], {**summary_of(), **changes}))
    assert table(lines)[-1].endswith(f" 32.00  {words}")
