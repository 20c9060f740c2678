"""The dashboard as a Dash application: its page, and what follows when a control is moved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args
from uuid import uuid4

import dash
from dash import Input, Output, State, ctx, dcc, html, no_update
from dash.exceptions import PreventUpdate

from servesim.check import Problem, field_problems
from servesim.report.dashboard import state as states
from servesim.report.dashboard.charts import of_sweep, over_rates
from servesim.report.dashboard.clientside import connect_browser
from servesim.report.dashboard.controls import (
    MENUS,
    SLIDER,
    SLIDERS,
    VALUES,
    in_control,
    options,
    position,
    sidebar,
    slid,
)
from servesim.report.dashboard.curve import rate_curve
from servesim.report.dashboard.loaded import Loaded
from servesim.report.dashboard.rescore import Judge
from servesim.report.dashboard.results import cards, legend, problem_list, results, summaries
from servesim.report.dashboard.whatif import WhatIfs
from servesim.report.frontier.drawing import limits_of
from servesim.report.page import style_sheet
from servesim.report.theme import Mode, template
from servesim.results.pricing import Pricing
from servesim.results.slo import Slo
from servesim.screen.figures import counted

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>{{%metas%}}<title>{{%title%}}</title>{{%favicon%}}<style>{style}</style>{{%css%}}</head>
<body>{{%app_entry%}}<footer hidden>{{%config%}}{{%scripts%}}{{%renderer%}}</footer></body>
</html>
"""


class Dashboard:
    """The parts of the page, and the answers that its callbacks give."""

    def __init__(self, loaded: Mapping[str, Loaded], whatifs: WhatIfs) -> None:
        self._loaded = loaded
        self._whatifs = whatifs
        self._latest: dict[str, Any] = {}  # what each open page waits for

    def layout(self) -> html.Div:
        """Return the page as it starts; each that is opened is a client of its own."""
        return html.Div(
            [
                dcc.Location(id="url", refresh=False),
                *(dcc.Store(id=name) for name in ("state", "mode", "ran", "drawn")),
                dcc.Store(
                    id="templates",
                    data={mode: template(mode).to_plotly_json() for mode in get_args(Mode)},
                ),
                dcc.Store(id="client", data=uuid4().hex),
                sidebar(list(self._loaded)),
                html.Div(
                    [
                        html.Header(
                            [
                                html.H1("servesim dashboard"),
                                html.Code(id="command"),
                                html.Button("Copy the command", id="copy"),
                                html.Button("Light or dark", id="toggle"),
                            ]
                        ),
                        html.Div(id="results"),
                        html.Div(id="curves"),
                        html.Div(id="picked"),
                        html.Div(id="summaries"),
                    ],
                    id="main",
                ),
            ],
            id="page",
        )

    def moved(self, search: str | None, values: Mapping[str, Any], compare: bool) -> dict[str, Any] | None:
        """Return the state after a control was moved, or a URL opened; None before the page knows its URL."""
        if search is None:
            return None
        trigger = ctx.triggered_id
        query = search
        if trigger is not None and trigger != "url":
            query = states.query_of(self._after(str(trigger), values, compare), compare)
        state, problems = states.State.read(query)
        return {
            "query": state.query(),
            "problems": [
                (each.path, each.value, each.message) for each in problems if state.shows(each.path)
            ],
            "unread": [each.path for each in problems],
        }

    def options(self, name: str, value: states.Value) -> list[dict[str, Any]]:
        """Return what a menu offers, its present value in any case."""
        return options(name, value, list(self._loaded))

    def _after(self, trigger: str, values: Mapping[str, Any], compare: bool) -> dict[str, Any]:
        """Return the values of the controls after one of them was moved, with what follows from it."""
        given = {name: value for name, value in values.items() if name in states.KINDS}
        if trigger.endswith(SLIDER):
            given[trigger.removesuffix(SLIDER)] = slid(values[trigger])
        if trigger == "compare" and compare:
            given = {name: value for name, value in given.items() if not name.startswith(states.B)}
        if trigger == "sweep" and given["sweep"]:
            given |= _objective(self._loaded.get(given["sweep"]))
        if trigger.removeprefix(states.B) == "gpu":
            given[f"{trigger.removesuffix('gpu')}price"] = None  # a price is that of a GPU
        return given

    def shown(self, said: Mapping[str, Any], mode: Any) -> tuple[list[Any], list[Any], str]:
        """Return the results, the folded summaries, and the command of a state."""
        state, _ = states.State.read(said["query"])
        text = "" if state.view.sweep else "\n".join(state.commands())
        if said["problems"]:
            return [problem_list([Problem(*each) for each in said["problems"]])], [], text
        if state.view.sweep:
            return self._sweep(state, mode), [], ""
        answers = {
            letter: self._whatifs.ask(state.overrides(setup)) for letter, setup in state.setups.items()
        }
        return results(answers, state, mode), summaries(answers), text

    def curves(self, ran: Mapping[str, Any], mode: Any, client: str) -> list[Any] | None:
        """Return the charts over the rate; None when the page waits for another state by now."""
        self._latest[client] = ran
        state, _ = states.State.read(ran["query"])
        if state.view.sweep or ran["problems"]:
            return []
        table = rate_curve(self._whatifs, state, lambda: self._latest.get(client) is ran)
        if self._latest.get(client) is not ran:
            return None
        if table is None:
            return []
        charts = over_rates(table, float(state.demand.rate or 0.0))
        return [html.Div(cards(charts, mode, "curve"), className="charts")]

    def _sweep(self, state: states.State, mode: Any) -> list[Any]:
        name = str(state.view.sweep)
        if name not in self._loaded:
            return [problem_list([Problem("sweep", name, "is not loaded")])]
        if found := out_of_bounds(state):
            return [problem_list(found)]
        judge = _judge(state)
        sweep = self._loaded[name].sweep
        drawing, charts = of_sweep(self._loaded[name], judge)
        lead = f"{sweep.question} {counted(len(sweep.table), 'run')}; {judge.told()}."
        return [
            html.P(lead.strip(), className="lead"),
            legend(drawing),
            html.Div(cards(charts, mode, "curve"), className="charts two"),
        ]


def out_of_bounds(state: states.State) -> list[Problem]:
    """Return which limits and prices for a loaded sweep a run would refuse."""
    demand = state.demand
    limits = {"ttft_s": demand.ttft, "tpot_s": demand.tpot, "attainment": demand.attainment}
    given = {name: value for name, value in limits.items() if value is not None}
    price = {"usd_per_gpu_hour": state.view.sweep_price}
    return [*field_problems(Slo, given, "slo"), *field_problems(Pricing, price, "pricing")]


def _judge(state: states.State) -> Judge:
    """Return what the controls judge a loaded sweep by."""
    demand, price = state.demand, state.view.sweep_price
    limits = {"ttft_s": demand.ttft, "tpot_s": demand.tpot}
    return Judge(
        {name: None if limit is None else float(limit) for name, limit in limits.items()},
        float(demand.attainment or 0.0),
        None if price is None else float(price),
    )


def _objective(loaded: Loaded | None) -> dict[str, Any]:
    """Return the limits that a sweep was run with, where all its points share them."""
    if loaded is None:
        return {}
    table = loaded.sweep.table
    limits = limits_of(table)
    targets = set(table["goodput.target"].dropna()) if "goodput.target" in table else set()
    said: dict[str, Any] = {"ttft": limits.get("ttft_s"), "tpot": limits.get("tpot_s")}
    return said | ({"attainment": float(min(targets))} if len(targets) == 1 else {})


def create_app(loaded: Mapping[str, Loaded], whatifs: WhatIfs) -> dash.Dash:
    """Return the application; it fetches nothing from other hosts."""
    app = dash.Dash(
        __name__,
        title="servesim dashboard",
        update_title="",
        serve_locally=True,
        suppress_callback_exceptions=True,
        index_string=_PAGE.format(style=style_sheet()),
    )
    dashboard = Dashboard(loaded, whatifs)
    app.layout = dashboard.layout
    _connect_controls(app, dashboard)
    _connect_results(app, dashboard)
    connect_browser(app)
    return app


def _connect_controls(app: dash.Dash, dashboard: Dashboard) -> None:
    """Connect all controls and the URL with the state and with each other."""
    sliders = [f"{name}{SLIDER}" for name in SLIDERS]
    ids = [*VALUES, *sliders]

    @app.callback(
        output={
            "state": Output("state", "data"),
            "search": Output("url", "search"),
            "compare": Output("compare", "value"),
            "side": Output("side", "value"),
            "values": {name: Output(name, "value") for name in ids},
            "options": {name: Output(name, "options") for name in MENUS},
        },
        inputs={
            "search": Input("url", "search"),
            "compare": Input("compare", "value"),
            "values": {name: Input(name, "value") for name in ids},
            "side": State("side", "value"),
        },
    )
    def move(search: str | None, compare: list[str], values: dict[str, Any], side: str) -> dict[str, Any]:
        said = dashboard.moved(search, values, bool(compare))
        if said is None:
            raise PreventUpdate
        state, _ = states.State.read(said["query"])
        if ctx.triggered_id == "compare" or not state.b:
            side = "B" if state.b else "A"
        now = state.values()
        places = {f"{name}{SLIDER}": position(name, now[name]) for name in SLIDERS}
        if ctx.triggered_id in places:
            places[ctx.triggered_id] = no_update
        shown = {name: in_control(name, now[name]) for name in VALUES} | places
        if ctx.triggered_id != "url":  # what cannot be read stays to be corrected
            shown |= dict.fromkeys(said["unread"], no_update)
        return {
            "state": said,
            "search": no_update if said["query"] == search else said["query"],
            "compare": ["on"] if state.b else [],
            "side": side,
            "values": shown,
            "options": {name: dashboard.options(name, now[name]) for name in MENUS},
        }


def _connect_results(app: dash.Dash, dashboard: Dashboard) -> None:
    @app.callback(
        Output("results", "children"),
        Output("summaries", "children"),
        Output("command", "children"),
        Output("ran", "data"),
        Input("state", "data"),
        Input("mode", "data"),
        State("drawn", "data"),
    )
    def show(said: dict[str, Any] | None, mode: str | None, drawn: str | None) -> tuple[Any, ...]:
        recoloured = ctx.triggered_id == "mode" and said is not None and drawn == said["query"]
        if said is None or mode is None or recoloured:  # what is drawn, the browser recolours by itself
            raise PreventUpdate
        return *dashboard.shown(said, mode), said | {"mode": mode}

    @app.callback(
        Output("curves", "children"), Output("drawn", "data"), Input("ran", "data"), State("client", "data")
    )
    def draw(ran: dict[str, Any] | None, client: str) -> Any:
        if ran is None:
            raise PreventUpdate
        drawn = dashboard.curves(ran, ran["mode"], client)
        return (no_update, no_update) if drawn is None else (drawn, ran["query"])
