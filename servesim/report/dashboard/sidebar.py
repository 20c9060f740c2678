"""The side of the page: all controls, in groups that fold away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from dash import dcc, html

from servesim.report.dashboard.catalogue import CONTROLS
from servesim.report.dashboard.setup import Setup
from servesim.report.dashboard.state import B, State


class Group(NamedTuple):
    """Controls that fold away under a title."""

    id: str
    title: str
    names: Sequence[str]


_HARDWARE = ("model", "weights", "gpu", "tp", "scheduler", "kv", "replicas", "prefill", "decode", "price")
#: What folds away of a configuration, and of what is asked.
OF_SETUP = (
    Group(
        "engine",
        "Engine",
        (
            "seqs",
            "tokens",
            "step_target",
            "batch",
            "batch_wait",
            "order",
            "preempt",
            "by",
            "policy",
            "prefix",
        ),
    ),
    Group("guess", "Speculation", ("speculation", "draft", "drafted", "acceptance")),
    Group("memory", "KV memory", ("blocks", "preemption", "swap", "offload", "host", "store")),
    Group(
        "front",
        "Router and admission",
        ("router", "ahead", "imbalance", "delay", "admission", "queued", "predicted"),
    ),
)
_TRAFFIC = (
    *("workload", "arrivals", "rate", "concurrency", "burstiness"),
    *("lengths", "input", "output", "requests", "duration", "steady", "seed"),
)
OF_DEMAND = (
    Group(
        "talk",
        "Conversations",
        ("turns", "think", "sessions", "system_prompt", "system_prompts", "calls", "tool_delay"),
    ),
    Group("tenants", "Tenants", ("paid", "paid_priority", "paid_weight", "paid_slack")),
    Group("overload", "Overload", ("timeout", "ttft_timeout", "retries", "backoff", "client", "outstanding")),
)
_SLO = ("ttft", "tpot", "attainment")

#: All groups by the ids of their elements; those of configuration B have names of its own.
GROUPS: dict[str, tuple[str, ...]] = {
    f"{before}{group.id}-group": tuple(before + name for name in group.names)
    for groups, sides in ((OF_SETUP, ("", B)), (OF_DEMAND, ("",)))
    for before in sides
    for group in groups
}


def mark_of(group: str) -> str:
    """Return the id of what a group says of itself while it is folded."""
    return f"{group}-mark"


def told(state: State, group: str) -> str:
    """Return how many of the controls of a group are seen and say something; empty where none do."""
    said = dict(part_changes(state))
    count = sum(name in said and state.shows(name) for name in GROUPS[group])
    return f"{count} set" if count else ""


def part_changes(state: State) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of all controls that are not as they start."""
    for before, part in (("", state.a), (B, state.b or state.a), ("", state.demand), ("", state.view)):
        yield from ((before + name, value) for name, value in part.changes())


def sidebar(sweeps: Sequence[str]) -> html.Div:
    """Return all controls, as the state starts."""
    return html.Div(
        [
            html.Div(views(sweeps), id="view", className="" if sweeps else "unused"),
            html.Div(_sides(), id="sides"),
            html.Div(_panel("", _HARDWARE, OF_SETUP), id="setup-a"),
            html.Div(_panel(B, _HARDWARE, OF_SETUP), id="setup-b"),
            html.Div([html.H2("Traffic"), *_panel("", _TRAFFIC, OF_DEMAND)], id="traffic"),
            html.Div([html.H2("SLO"), *_row(_SLO)], className="panel"),
            html.Div([html.H2("Price"), *_row(["sweep_price"])], id="prices", className="panel"),
        ],
        id="sidebar",
    )


def views(sweeps: Sequence[str]) -> dcc.Dropdown:
    """Return the menu of what is shown; there is nothing to choose without sweeps."""
    return dcc.Dropdown(id="sweep", options=viewed(sweeps), value="", clearable=False, searchable=False)


def viewed(sweeps: Sequence[str], value: str = "") -> list[dict[str, Any]]:
    """Return what can be shown: what-ifs, the sweeps, and what a URL names."""
    named = dict.fromkeys([*sweeps, *([value] if value else [])])
    return [{"label": "What-if", "value": ""}, *({"label": name, "value": name} for name in named)]


def _sides() -> list[Any]:
    return [
        html.H2("Configuration"),
        dcc.RadioItems(id="side", options=["A", "B"], value="A", inline=True),
        dcc.Checklist(id="compare", options=[{"label": "compare", "value": "on"}], value=[]),
    ]


def _panel(before: str, names: Sequence[str], groups: Sequence[Group]) -> list[Any]:
    """Return controls that are always seen, and below them groups that fold away."""
    return [
        html.Div(_row(names, before), className="panel"),
        *(_folded(group, before) for group in groups),
    ]


def _folded(group: Group, before: str) -> html.Details:
    element = f"{before}{group.id}-group"
    return html.Details(
        [
            html.Summary([group.title, html.Span(id=mark_of(element), className="mark")]),
            html.Div(_row(group.names, before), className="panel"),
        ],
        id=element,
        className="group",
        hidden=not any(map(State(b=Setup()).shows, GROUPS[element])),
    )


def _row(names: Sequence[str], before: str = "") -> list[html.Div]:
    start = State(b=Setup())
    return [
        CONTROLS[name].component(
            before + name,
            getattr(part, name),
            part.own(name),
            part.keys(name),
            hidden=not start.shows(before + name),
        )
        for name in names
        for part, _ in [start.part(before + name)]
    ]
