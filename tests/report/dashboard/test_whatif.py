"""What-ifs answer as runs do, keep their answers, and say in a sentence why there is none."""

from dataclasses import replace

import pytest

from servesim import load, run
from servesim.report.dashboard.curve import FACTORS, load_curve, loads
from servesim.report.dashboard.demand import Demand
from servesim.report.dashboard.setup import Setup
from servesim.report.dashboard.state import State
from servesim.report.dashboard.whatif import WhatIfs

SMALL = ("calibration=roofline", "workload.requests=60")
STATE = State(a=Setup(model="llama3.1-8b"), demand=Demand(requests=60, rate=8.0))


def without_simulator(summary: dict[str, object] | None) -> dict[str, object]:
    assert summary is not None
    return {name: value for name, value in summary.items() if name != "simulator"}


@pytest.mark.parametrize("more", [(), ("scheduler=disaggregated", "slo.ttft_s=0.1"), ("gpu=h200-sxm",)])
def test_an_answer_is_that_of_the_run(more: tuple[str, ...]) -> None:
    overrides = (*SMALL, *more)
    answer, result = WhatIfs().ask(overrides), run(load(*overrides))
    assert without_simulator(answer.summary) == without_simulator(result.summary)
    assert answer.times.equals(result.requests[list(answer.times)])


def test_a_question_is_answered_once() -> None:
    whatifs = WhatIfs()
    assert whatifs.ask(SMALL) is whatifs.ask(SMALL)


def test_every_problem_is_told() -> None:
    problems = WhatIfs().ask(("workload.arrivals.rate_rps=-1", "cluster.replicas=0", "gpu=h1000")).problems
    assert {each.path for each in problems} == {"workload.arrivals.rate_rps", "cluster.replicas", "gpu"}


def test_a_model_that_does_not_fit_has_its_memory_sheet() -> None:
    (problem,) = WhatIfs().ask(("model=llama3.1-405b",)).problems
    assert "does not fit" in problem.message
    assert "GB  weights" in problem.message


def test_a_run_that_is_too_large_is_refused() -> None:
    (problem,) = WhatIfs(most_requests=50).ask(SMALL).problems
    assert problem.path == "workload.requests"
    assert "at most 50 requests" in problem.message


def test_a_run_of_too_many_tokens_is_refused() -> None:
    lengths = ("workload/lengths=fixed", "workload.lengths.input=100000", "workload.lengths.output=20000")
    (problem,) = WhatIfs().ask(lengths).problems
    assert problem.message.startswith("240,000,000 tokens; a what-if has at most 30,000,000")


def test_a_run_that_takes_too_long_is_stopped() -> None:
    (problem,) = WhatIfs(most_s=0.0).ask(("calibration=roofline", "workload.requests=5000")).problems
    assert "stopped after 0 s" in problem.message


@pytest.mark.parametrize(
    ("demand", "key", "load"),
    [
        (Demand(requests=60, rate=8.0), "workload.arrivals.rate_rps", 8.0),
        (Demand(requests=60, arrivals="closed_loop", concurrency=6), "workload.arrivals.concurrency", 6),
        (Demand(requests=60, arrivals="closed_loop"), "workload.arrivals.concurrency", 64),
    ],
)
def test_a_curve_goes_through_the_present_state(demand: Demand, key: str, load: float) -> None:
    whatifs, state = WhatIfs(), replace(STATE, demand=demand)
    curve = load_curve(whatifs, state, lambda: True)
    assert curve is not None
    assert (curve.key, curve.load) == (key, load)
    assert curve.table[key].tolist() == loads(load)
    here = curve.table[curve.table[key] == load].iloc[0]
    summary = whatifs.ask(state.overrides(state.a)).summary
    assert summary is not None
    assert here["latency.ttft_s.p99"] == summary["latency"]["ttft_s"]["p99"]
    assert here["command"] == state.commands()[0]
    assert set(curve.table.status) == {"clean"}


@pytest.mark.parametrize("load", [1, 3, 64, 0.1, 8.0])
def test_the_loads_of_a_curve_rise_through_the_present_one(load: float) -> None:
    found = loads(load)
    assert load in found
    assert found == sorted(set(found))
    assert found[0] > 0
    assert {type(each) for each in found} == {type(load)}


def test_a_curve_has_both_configurations() -> None:
    curve = load_curve(WhatIfs(), replace(STATE, b=replace(STATE.a, replicas=1)), lambda: True)
    assert curve is not None
    assert curve.table.groupby("variant").size().to_dict() == {"A": len(FACTORS), "B": len(FACTORS)}


def test_a_curve_ends_when_nobody_waits_for_it() -> None:
    asked: list[int] = []

    def wanted() -> bool:
        asked.append(0)
        return len(asked) < 3

    assert load_curve(WhatIfs(), STATE, wanted) is None
    assert len(asked) == 3


@pytest.mark.parametrize(
    "state",
    [
        replace(STATE, a=Setup(model="llama3.1-405b")),
        replace(STATE, demand=Demand(requests=60, arrivals="burst")),
    ],
)
def test_there_is_no_curve_where_there_is_no_answer_or_no_load(state: State) -> None:
    assert load_curve(WhatIfs(), state, lambda: True) is None
