"""The state of the dashboard reads back from its URL, and its command asks for exactly what it says."""

import shlex
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servesim import load
from servesim.check import Problem
from servesim.cluster.pools import Pool, PrefillDecode
from servesim.config.groups import Groups
from servesim.report.dashboard.demand import Demand
from servesim.report.dashboard.part import kinds, written
from servesim.report.dashboard.setup import Setup
from servesim.report.dashboard.state import KINDS, State, View, command, query_of

GROUPS = Groups.of(None)
NUMBERS = st.none() | st.floats(allow_nan=False, allow_infinity=False)
WHOLES = st.none() | st.integers(-5, 10**6)
WORDS = st.text(min_size=1, max_size=12)


def values_of(part: type, name: str, kind: type) -> st.SearchStrategy[object]:
    """Return what a control may hold: anything of its kind, and now and then an option that exists."""
    if kind is not str:
        return WHOLES if kind is int else NUMBERS
    known = [*OPTIONS.get(name, ())]
    none = st.none() if getattr(part(), name) is None else st.nothing()
    return none | (st.sampled_from(known) | WORDS if known else WORDS)


OPTIONS = {
    "scheduler": GROUPS.options("scheduler"),
    "speculation": GROUPS.options("scheduler/speculation"),
    "offload": GROUPS.options("scheduler/offload"),
    "router": GROUPS.options("router"),
    "admission": GROUPS.options("admission"),
    "workload": ["synthetic", "sessions", "agentic"],
    "arrivals": GROUPS.options("workload/arrivals"),
    "lengths": GROUPS.options("workload/lengths"),
    "client": GROUPS.options("client"),
}
SETUPS, DEMANDS = (
    st.builds(part, **{name: values_of(part, name, kind) for name, kind in kinds(part).items()})
    for part in (Setup, Demand)
)
STATES = st.builds(
    State,
    a=SETUPS,
    b=st.none() | SETUPS,
    demand=DEMANDS,
    view=st.builds(View, sweep=st.none() | WORDS, sweep_price=NUMBERS),
)


@given(STATES)
def test_a_state_reads_back_from_its_url(state: State) -> None:
    assert State.read(state.query()) == (state, [])


@given(STATES)
def test_a_state_reads_back_from_its_controls(state: State) -> None:
    compare = state.b is not None
    assert State.of(state.values(), compare) == state
    assert State.read(query_of(state.values(), compare)) == (state, [])
    assert set(state.values()) == set(KINDS)


@given(STATES)
def test_a_command_says_the_overrides_and_survives_the_shell(state: State) -> None:
    for setup, text in zip(state.setups.values(), state.commands(), strict=True):
        assert tuple(shlex.split(text)) == ("servesim", *state.overrides(setup))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_written_so_that_it_reads_back(number: float) -> None:
    assert float(written(number)) == number


def test_what_the_state_starts_with_is_what_the_configuration_files_say() -> None:
    state = State()
    assert state.query() == ""
    assert state.commands() == ["servesim"]
    _check(state, state.a)


@settings(max_examples=4, deadline=None)
@given(
    st.builds(
        Setup,
        model=st.sampled_from(GROUPS.options("model")),
        weights=st.none() | st.sampled_from(["bf16", "fp8", "int4"]),
        gpu=st.sampled_from(["h200-sxm", "b200-sxm"]),
        scheduler=st.sampled_from(GROUPS.options("scheduler")),
        replicas=st.integers(1, 9),
        prefill=st.integers(1, 9),
        decode=st.integers(1, 9),
        tp=st.just(8),
        kv=st.sampled_from(["auto", "bf16", "fp8"]),
        price=st.none() | st.floats(0, 100),
    ),
    st.builds(
        Demand,
        rate=st.floats(1e-3, 1e3),
        lengths=st.sampled_from(["conversation", "code", "fixed"]),
        input=st.integers(1, 4000),
        output=st.integers(1, 4000),
        requests=st.integers(1, 10**6),
        seed=st.integers(0, 10**9),
        ttft=st.none() | st.floats(1e-3, 10),
        tpot=st.none() | st.floats(1e-3, 10),
        attainment=st.floats(0.01, 1),
    ),
)
def test_the_overrides_make_a_scenario_that_is_as_the_controls_say(setup: Setup, demand: Demand) -> None:
    if setup.model == "llama3.1-405b":
        setup = replace(setup, weights="int4")  # fits on eight GPUs
    _check(State(a=setup, demand=demand), setup)


def _check(state: State, setup: Setup) -> None:
    scenario, demand = load(*state.overrides(setup)), state.demand
    cluster = scenario.cluster
    if isinstance(cluster, PrefillDecode):
        assert (cluster.prefill.replicas, cluster.decode.replicas) == (setup.prefill, setup.decode)
        assert {cluster.prefill.tensor_parallel_size, cluster.decode.tensor_parallel_size} == {setup.tp}
    else:
        assert isinstance(cluster, Pool)
        assert (cluster.replicas, cluster.tensor_parallel_size) == (setup.replicas, setup.tp)
    assert type(scenario.scheduler).__name__.lower() == setup.scheduler
    assert (scenario.gpu.name, scenario.model.name) == (setup.gpu, setup.model)
    assert setup.weights in (None, scenario.model.weights_dtype)
    assert scenario.scheduler.kv_cache_dtype == setup.kv
    assert scenario.pricing.usd_per_gpu_hour == setup.price
    workload = scenario.workload
    assert workload.arrivals.rate_rps == demand.rate
    assert (workload.requests, scenario.seed) == (demand.requests, demand.seed)
    if demand.lengths == "fixed":
        assert (workload.lengths.input, workload.lengths.output) == (demand.input, demand.output)
    slo = scenario.slo
    assert (slo.ttft_s, slo.tpot_s, slo.attainment) == (demand.ttft, demand.tpot, demand.attainment)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("?rate=fast&gpu=h200-sxm", ["rate"]),
        ("?speed=1&replicas=two", ["speed", "replicas"]),
        ("?rate=nan", ["rate"]),
    ],
)
def test_what_cannot_be_read_is_listed_and_the_rest_holds(query: str, names: list[str]) -> None:
    state, problems = State.read(query)
    assert [problem.path for problem in problems] == names
    assert state.a.gpu == ("h200-sxm" if "gpu" in query else "h100-sxm")
    assert state.demand.rate == 4.0


def test_a_limit_that_is_not_asked_for_is_said() -> None:
    state, _ = State.read("?ttft=")
    assert state.demand.ttft is None
    assert state.commands() == ["servesim slo.ttft_s=null"]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("?lengths=fixed&input=800&output=64", "workload/lengths=fixed workload.lengths.input=800 "),
        ("?lengths=code&requests=500&rate=9", "workload.arrivals.rate_rps=9 workload/lengths=code "),
        ("?input=800&output=64", ""),
        ("?scheduler=disaggregated&prefill=2&replicas=9&tp=2", "scheduler=disaggregated "),
        ("?kv=fp8&weights=int4&price=2.5&ttft=&compare=1&b-tp=8", "model.weights_dtype=int4 "),
    ],
)
def test_links_to_earlier_dashboards_say_what_they_said(query: str, said: str) -> None:
    state, problems = State.read(query)
    assert problems == []
    assert said in f"{state.commands()[0]} "
    assert "workload" not in state.commands()[0] or "lengths=" in query
    load(*state.overrides(state.a))


@pytest.mark.parametrize(
    ("path", "letter", "names"),
    [
        ("scheduler.prefill_policy", "A", ["policy"]),
        ("scheduler.offload", "A", ["offload"]),
        ("scheduler.offload.host.capacity", "A", ["host"]),
        ("scheduler.offload.host.capacity", "B", ["b-offload"]),
        ("scheduler.block_size", "B", ["b-scheduler"]),
        ("workload.arrivals.rate_rps", "B", ["rate"]),
        ("workload.tenants.paid.share", "A", ["paid"]),
        ("cluster", "A", []),
        ("", "A", []),
    ],
)
def test_a_problem_is_that_of_the_control_whose_key_is_nearest(
    path: str, letter: str, names: list[str]
) -> None:
    state, _ = State.read("?offload=host&compare=1&b-offload=none")
    assert state.to_blame(Problem(path, None, "is wrong"), letter) == names


def test_configuration_b_is_as_a_unless_it_says_otherwise() -> None:
    state, _ = State.read("?gpu=h200-sxm&compare=1&b-tp=8")
    assert state.b == replace(state.a, tp=8)
    assert state.query() == "?gpu=h200-sxm&compare=1&b-tp=8"


def test_two_pools_of_a_disaggregated_cluster_have_the_same_parallelism() -> None:
    setup = Setup(scheduler="disaggregated", tp=8, replicas=7, prefill=3)
    assert command(tuple(setup.overrides())) == (
        "servesim cluster.prefill.tensor_parallel_size=8 cluster.decode.tensor_parallel_size=8 "
        "scheduler=disaggregated cluster.prefill.replicas=3"
    )


@given(STATES)
def test_what_a_configuration_has_not_is_not_seen(state: State) -> None:
    seen = {name for name in KINDS if state.shows(name)}
    assert state.shows("no control")
    assert {"sweep", "ttft", "tpot", "attainment"} <= seen
    if state.view.sweep:
        assert "price" not in seen
        return
    assert "sweep_price" not in seen
    known = state.a.scheduler in OPTIONS["scheduler"]
    assert ("replicas" in seen) == (known and state.a.pooled)
    assert ("prefill" in seen) == (state.a.scheduler == "disaggregated")
    assert ("b-price" in seen) == (state.b is not None)
    assert ("policy" in seen) == (state.a.scheduler == "continuous")
    assert ("speculation" in seen) == (state.a.scheduler in ("continuous", "disaggregated"))
    assert ("turns" in seen) == (state.demand.workload in ("sessions", "agentic"))
    assert not {"rate", "concurrency"} <= seen


@pytest.mark.parametrize("name", ["model", "b-gpu", "scheduler", "lengths", "kv", "sweep"])
def test_a_url_has_nothing_filled_in(name: str) -> None:
    state, found = State.read(f"?compare=1&{name}=${{oc.env:HOME}}")
    assert [problem.path for problem in found] == [name]
    assert not any("${" in text for setup in state.setups.values() for text in state.overrides(setup))
