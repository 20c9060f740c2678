"""Whatever is chosen of any menu makes a scenario, or a problem that names what was chosen."""

from collections.abc import Iterator
from itertools import combinations

import pytest

pytest.importorskip("dash", reason="needs dash, of the extra dashboard")

from servesim.check import Problem
from servesim.config.expansion import Expansion
from servesim.config.groups import Groups
from servesim.report.dashboard.catalogue import CONTROLS
from servesim.report.dashboard.part import Value
from servesim.report.dashboard.state import State

SCHEDULERS = Groups.of(None).options("scheduler")
WORKLOADS = CONTROLS["workload"].options
#: Menus whose options meet in a configuration, so that each pair of them is tried.
MEETING = (
    "order",
    "preempt",
    "policy",
    "prefix",
    "speculation",
    "preemption",
    "offload",
    "router",
    "admission",
)

SCENARIOS = Expansion(Groups.of(None))


def said(state: State) -> list[Problem]:
    """Return what is wrong with a state, but that a model does not fit."""
    built = SCENARIOS.scenario(state.overrides(state.a))
    assert (built.scenario is None) <= bool(built.refused)
    return [*built.refused, *(each for each in built.unfit if " does not fit on " not in each.message)]


def choices(name: str, state: State) -> Iterator[Value]:
    """Yield what the menu of a control offers."""
    part, short = state.part(name)
    for each in CONTROLS[name].offered(state.values()[name], part.own(short)):
        yield each["value"]


def chosen(start: State, **values: Value) -> State:
    return State.of({**start.values(), **values}, compare=False)


def check(state: State, *moved: str) -> bool:
    """Assert that every problem of a state names a control that was moved; tell whether there is any."""
    problems = said(state)
    keys = [key.replace("/", ".") for name in moved for key in state.part(name)[0].keys(name)]
    for problem in problems:
        path = problem.path.replace("/", ".")
        assert any(path == key or path.startswith(f"{key}.") for key in keys), f"{moved}: {problem}"
    return bool(problems)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_every_option_of_a_configuration_loads_or_is_named(scheduler: str) -> None:
    start = chosen(State(), scheduler=scheduler)
    names = [name for name in vars(start.a) if CONTROLS[name].options and start.shows(name)]
    assert {"model", "router", "admission"} <= set(names)
    for name in names:
        for option in choices(name, start):
            check(chosen(start, **{name: option}), name)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_option_of_the_traffic_loads_or_is_named(workload: str) -> None:
    start = chosen(State(), workload=workload)
    for name in ("arrivals", "lengths", "client"):
        for option in choices(name, start):
            check(chosen(start, **{name: option}), name, "workload")


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_two_options_that_do_not_go_together_are_named(scheduler: str) -> None:
    start = chosen(State(), scheduler=scheduler)
    refused = 0
    for one, other in combinations(MEETING, 2):
        for a in choices(one, start):
            first = chosen(start, **{one: a})
            if start.shows(one) and not said(first) and first.shows(other):
                refused += sum(check(chosen(first, **{other: b}), one, other) for b in choices(other, first))
    assert (refused > 0) == (scheduler != "static")


#: What has to be chosen for all controls to be there, each in one of them.
SHOWING: tuple[dict[str, Value], ...] = (
    {},
    {"scheduler": "static"},
    {"scheduler": "disaggregated", "arrivals": "gamma"},
    {"speculation": "draft_model", "offload": "host_and_store", "preemption": "swap", "router": "kv_aware"},
    {"admission": "queue_limit", "workload": "sessions", "paid": 0.5, "lengths": "fixed"},
    {"admission": "ttft_slo", "workload": "agentic"},
)
NUMBERS = [name for name, control in CONTROLS.items() if not control.options and name != "sweep_price"]


@pytest.mark.parametrize("name", NUMBERS)
def test_every_number_sets_a_key_that_is_there(name: str) -> None:
    states = [state for given in SHOWING if (state := chosen(State(), **given)).shows(name)]
    assert states
    for state in states:
        part, short = state.part(name)
        start, own = getattr(part, short), part.own(short)
        known = (own, start, 10_000 if CONTROLS[name].kind is int else 0.5)
        value = next(each for each in known if each is not None)
        told = chosen(state, **{name: value})
        assert said(told) == []
        changes = value != getattr(type(part)(), short)
        assert changes == any(
            f"{key}=" in text for text in told.overrides(told.a) for key in part.keys(short)
        )


BOUNDED = ("draft", "seqs", "blocks", "store", "ahead", "predicted", "paid", "timeout", "turns")


@pytest.mark.parametrize("name", BOUNDED)
def test_what_is_out_of_bounds_is_named(name: str) -> None:
    start = chosen(
        State(),
        speculation="draft_model",
        offload="store",
        router="kv_aware",
        admission="ttft_slo",
        workload="sessions",
    )
    assert said(start) == []
    assert start.shows(name)
    wrong = chosen(start, **{name: "qwen3-32b" if name == "draft" else -1})
    (key,) = wrong.part(name)[0].keys(name)
    assert next(problem.path for problem in said(wrong)).startswith(key)
