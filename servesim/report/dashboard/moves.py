"""What follows when a control is moved, or a URL opened: the state, and how all controls then stand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dash
from dash import Input, Output, ctx, no_update
from dash import State as Given
from dash.exceptions import PreventUpdate

from servesim.report.dashboard.catalogue import (
    BLANKS,
    MENUS,
    SLIDERS,
    VALUES,
    control_of,
    slider_of,
)
from servesim.report.dashboard.control import SLIDER, WHOLE, in_control
from servesim.report.dashboard.limits import objective
from servesim.report.dashboard.loaded import Loaded
from servesim.report.dashboard.sidebar import GROUPS, mark_of, told, viewed
from servesim.report.dashboard.state import KINDS, B, State, query_of

#: What is of an option, and goes back to what the files say when another one is chosen.
_FOLLOWERS = {
    "gpu": ("price",),
    "speculation": ("draft", "drafted", "acceptance"),
    "offload": ("host", "store"),
    "router": ("ahead", "imbalance", "delay"),
    "admission": ("queued", "predicted"),
    "workload": (
        *("arrivals", "concurrency", "burstiness", "lengths", "input", "output"),
        *("turns", "think", "system_prompt", "calls", "tool_delay"),
    ),
    "arrivals": ("concurrency", "burstiness"),
    "lengths": ("input", "output"),
    "client": ("timeout", "ttft_timeout", "retries", "backoff"),
}


def moved(
    loaded: Mapping[str, Loaded], search: str | None, values: Mapping[str, Any], compare: bool
) -> dict[str, Any] | None:
    """Return what the page says after a control was moved, or a URL opened; None before it knows its URL."""
    if search is None:
        return None
    trigger = ctx.triggered_id
    query = search
    if trigger is not None and trigger != "url":
        query = query_of(after(str(trigger), values, compare, loaded), compare)
    state, problems = State.read(query)
    return {
        "query": state.query(),
        "problems": [(each.path, each.value, each.message) for each in problems if state.shows(each.path)],
        "unread": [each.path for each in problems],
    }


def after(
    trigger: str, values: Mapping[str, Any], compare: bool, loaded: Mapping[str, Loaded]
) -> dict[str, Any]:
    """Return the values of the controls after one of them was moved, with what follows from it."""
    given = {name: value for name, value in values.items() if name in KINDS}
    if trigger.endswith(SLIDER):
        name = trigger.removesuffix(SLIDER)
        given[name] = control_of(name).slid(values[trigger])
    if trigger == "compare" and compare:
        given = {name: value for name, value in given.items() if not name.startswith(B)}
    if trigger == "sweep" and given["sweep"]:
        given |= objective(loaded.get(given["sweep"]))
    side = B if trigger.startswith(B) else ""
    return given | {f"{side}{name}": None for name in _FOLLOWERS.get(trigger.removeprefix(B), ())}


def standing(state: State, sweeps: list[str]) -> dict[str, dict[str, Any]]:
    """Return how all controls stand: values, what menus offer and blanks say, and what is seen of them."""
    now = state.values()
    own = {name: part.own(short) for name in VALUES for part, short in [state.part(name)]}
    places = {slider_of(name): control_of(name).position(_known(now[name], own[name])) for name in SLIDERS}
    return {
        "values": {name: in_control(now[name]) for name in KINDS} | places,
        "options": {name: control_of(name).offered(now[name], own[name]) for name in MENUS}
        | {"sweep": viewed(sweeps, str(now["sweep"] or ""))},
        "blanks": {name: control_of(name).stands_at(own[name]) for name in BLANKS},
        "hidden": {name: not state.shows(name) for name in VALUES},
        "unused": {group: not any(map(state.shows, names)) for group, names in GROUPS.items()},
        "marks": {group: told(state, group) for group in GROUPS},
    }


def _known(value: Any, own: Any) -> Any:
    return own if value is None else value


def changed(
    before: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Return how controls stand, of which the browser need not be told what has not changed.

    It takes the browser seconds to take in hundreds of things, though all of them are what they were.
    """
    return {
        what: {name: no_update if _same(each, before[what].get(name)) else each for name, each in of.items()}
        for what, of in now.items()
    }


def _same(one: Any, other: Any) -> bool:
    """Tell whether two values are the same in a control, which may hold a number as text."""
    return bool(one == other) or (str(one) == str(other) and one is not None)


def connect_controls(app: dash.Dash, loaded: Mapping[str, Loaded]) -> None:
    """Connect all controls and the URL with the state and with each other."""
    ids = [*KINDS, *map(slider_of, SLIDERS)]

    @app.callback(
        output={
            "state": Output("state", "data"),
            "search": Output("url", "search"),
            "compare": Output("compare", "value"),
            "side": Output("side", "value"),
            "values": {name: Output(name, "value") for name in ids},
            "options": {name: Output(name, "options") for name in [*MENUS, "sweep"]},
            "blanks": {name: Output(name, "placeholder") for name in BLANKS},
            "hidden": {name: Output(f"{name}{WHOLE}", "hidden") for name in VALUES},
            "unused": {group: Output(group, "hidden") for group in GROUPS},
            "marks": {group: Output(mark_of(group), "children") for group in GROUPS},
            "open": {group: Output(group, "open") for group in GROUPS},
        },
        inputs={
            "search": Input("url", "search"),
            "compare": Input("compare", "value"),
            "values": {name: Input(name, "value") for name in ids},
            "side": Given("side", "value"),
            "before": Given("state", "data"),
        },
    )
    def move(
        search: str | None,
        compare: list[str],
        values: dict[str, Any],
        side: str,
        before: dict[str, Any] | None,
    ) -> dict[str, Any]:
        said = moved(loaded, search, values, bool(compare))
        if said is None:
            raise PreventUpdate
        state, _ = State.read(said["query"])
        last = State.read(before["query"])[0] if before else State()
        now = standing(state, list(loaded))
        shown = changed(standing(last, list(loaded)) | {"values": values}, now)
        by_url = ctx.triggered_id in (None, "url")
        if ctx.triggered_id in map(slider_of, SLIDERS):
            shown["values"][ctx.triggered_id] = no_update
        if not by_url:  # what cannot be read stays to be corrected
            shown["values"] |= dict.fromkeys(said["unread"], no_update)
        if ctx.triggered_id == "compare" or not state.b:
            side = "B" if state.b else "A"
        return {
            "state": said,
            "search": no_update if said["query"] == search else said["query"],
            "compare": ["on"] if state.b else [],
            "side": side,
            **shown,
            "open": {group: True if by_url and now["marks"][group] else no_update for group in GROUPS},
        }
