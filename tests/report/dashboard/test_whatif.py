"""What-ifs answer as runs do, keep their answers, and say in a sentence why there is none."""

from dataclasses import replace

import pytest

from servesim import load, run
from servesim.report.dashboard.curve import FACTORS, rate_curve, rates
from servesim.report.dashboard.state import RATE, Demand, Setup, State
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


def test_a_curve_goes_through_the_present_state() -> None:
    whatifs = WhatIfs()
    table = rate_curve(whatifs, STATE, lambda: True)
    assert table is not None
    assert table[RATE].tolist() == rates(8.0)
    assert len(table) == len(FACTORS)
    here = table[table[RATE] == 8.0].iloc[0]
    summary = whatifs.ask(STATE.overrides(STATE.a)).summary
    assert summary is not None
    assert here["latency.ttft_s.p99"] == summary["latency"]["ttft_s"]["p99"]
    assert here["command"] == STATE.commands()[0]


def test_a_curve_has_both_configurations() -> None:
    table = rate_curve(WhatIfs(), replace(STATE, b=replace(STATE.a, replicas=1)), lambda: True)
    assert table is not None
    assert table.groupby("variant").size().to_dict() == {"A": len(FACTORS), "B": len(FACTORS)}


def test_a_curve_ends_when_nobody_waits_for_it() -> None:
    asked: list[int] = []

    def wanted() -> bool:
        asked.append(0)
        return len(asked) < 3

    assert rate_curve(WhatIfs(), STATE, wanted) is None
    assert len(asked) == 3


def test_there_is_no_curve_where_there_is_no_answer() -> None:
    assert rate_curve(WhatIfs(), replace(STATE, a=Setup(model="llama3.1-405b")), lambda: True) is None
