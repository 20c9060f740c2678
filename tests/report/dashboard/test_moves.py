"""What follows when a control is moved, and what the browser is told of it."""

import pytest

pytest.importorskip("dash", reason="needs dash, of the extra dashboard")

from dash import no_update

from servesim.report.dashboard.moves import _FOLLOWERS, after, changed, standing
from servesim.report.dashboard.sidebar import GROUPS, sidebar
from servesim.report.dashboard.state import KINDS, B, State, query_of

RICH = (
    "?speculation=eagle&acceptance=0.9&offload=host&host=50&order=priority&paid=0.2&workload=sessions"
    "&lengths=fixed&input=300&turns=8&compare=1&b-router=kv_aware&b-delay=0.5&b-admission=queue_limit"
)
QUERIES = ("", "?scheduler=static", "?scheduler=disaggregated&compare=1&b-scheduler=static", RICH)


def moved(query: str, **values: object) -> State:
    """Return the state after a control was moved to a value."""
    state, _ = State.read(query)
    (trigger,) = values
    now = after(trigger, {**state.values(), **values}, state.b is not None, {})
    return State.read(query_of(now, state.b is not None))[0]


def test_what_is_of_an_option_goes_with_it() -> None:
    state = moved(RICH, speculation="ngram")
    assert (state.a.speculation, state.a.acceptance, state.a.host) == ("ngram", None, 50)
    state = moved(RICH, workload="agentic")
    assert (state.demand.lengths, state.demand.input, state.demand.turns) == (None, None, None)
    assert state.demand.paid == 0.2
    assert moved(RICH, lengths="code").demand.input is None


def test_what_is_of_an_option_of_b_goes_with_that_of_b() -> None:
    state, _ = State.read(RICH)
    values = {**state.values(), "b-router": "round_robin"}
    state = State.of(after("b-router", values, True, {}), compare=True)
    assert state.b is not None
    assert (state.b.router, state.b.delay, state.b.acceptance) == ("round_robin", None, 0.9)


@pytest.mark.parametrize("name", _FOLLOWERS)
def test_what_follows_is_set_below_what_is_moved(name: str) -> None:
    state = State()
    (above,) = state.part(name)[0].keys(name)
    for other in _FOLLOWERS[name]:
        part, short = state.part(other)
        assert getattr(part, short) is None
        below = part.keys(short)[0].replace("/", ".")
        assert name == "gpu" or below.startswith(f"{above.replace('/', '.')}.")


@pytest.mark.parametrize("one", QUERIES)
@pytest.mark.parametrize("other", QUERIES)
def test_the_browser_is_told_what_has_changed_and_no_more(one: str, other: str) -> None:
    before, now = (standing(State.read(query)[0], ["a sweep"]) for query in (one, other))
    told = changed(before, now)
    for what, of in now.items():
        for name, each in of.items():
            assert (told[what][name] is no_update) == (each == before[what][name])
            assert told[what][name] in (no_update, each)
    assert (one != other) == any(each is not no_update for of in told.values() for each in of.values())


def test_a_number_that_the_browser_holds_as_text_has_not_changed() -> None:
    now = {"values": {"ttft": 0.5, "tpot": "", "rate": 4.0, "seed": 0}}
    told = changed({"values": {"ttft": "0.5", "tpot": "", "rate": 4, "seed": None}}, now)
    assert told == {"values": {"ttft": no_update, "tpot": no_update, "rate": no_update, "seed": 0}}


def test_the_page_starts_as_the_state_does() -> None:
    elements = {getattr(each, "id", None): each for each in sidebar(["a sweep"])._traverse()}
    now = standing(State(), ["a sweep"])
    for name in KINDS:
        assert elements[name].value == now["values"][name]
    for name, options in now["options"].items():
        assert elements[name].options == options
    for name, blank in now["blanks"].items():
        assert elements[name].placeholder == blank
    for name in set(now["hidden"]) - {name for name in KINDS if name.startswith(B)}:
        assert elements[f"{name}-control"].hidden == now["hidden"][name]


def test_a_folded_group_tells_how_much_it_says() -> None:
    state, _ = State.read(RICH)
    marks = standing(state, [])["marks"]
    said = {group.removesuffix("-group"): mark for group, mark in marks.items() if mark}
    assert said == {
        "engine": "1 set",
        "guess": "2 set",
        "memory": "2 set",
        "tenants": "1 set",
        "talk": "1 set",
        "b-engine": "1 set",
        "b-guess": "2 set",
        "b-memory": "2 set",
        "b-front": "3 set",
    }
    static, _ = State.read(RICH.replace("&order", "&scheduler=static&order"))
    unused = standing(static, [])["unused"]
    assert {group for group in GROUPS if unused[group]} >= {"guess-group"}
    assert standing(static, [])["marks"]["guess-group"] == "", "what is not seen says nothing"
