"""The dashboard as a Dash application: what it answers to a state of its controls."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import dash
from dash import Input, Output, State, ctx, html, no_update
from dash.exceptions import PreventUpdate

from servesim.check import Problem
from servesim.report.dashboard import state as states
from servesim.report.dashboard.charts import of_sweep, over_loads
from servesim.report.dashboard.clientside import connect_browser
from servesim.report.dashboard.curve import load_curve
from servesim.report.dashboard.layout import document, layout
from servesim.report.dashboard.limits import judge_of, out_of_bounds
from servesim.report.dashboard.loaded import Loaded
from servesim.report.dashboard.moves import connect_controls
from servesim.report.dashboard.results import cards, legend, problem_list, results, summaries
from servesim.report.dashboard.whatif import WhatIfs
from servesim.screen.figures import counted


class Dashboard:
    """The answers that the page gets."""

    def __init__(self, loaded: Mapping[str, Loaded], whatifs: WhatIfs) -> None:
        self._loaded = loaded
        self._whatifs = whatifs
        self._latest: dict[str, Any] = {}  # what each open page waits for

    def shown(self, said: Mapping[str, Any], mode: Any) -> tuple[list[Any], list[Any], str, list[str]]:
        """Return the results, the folded summaries and the command of a state, and the controls to mend."""
        state, _ = states.State.read(said["query"])
        text = "" if state.view.sweep else "\n".join(state.commands())
        if said["problems"]:
            found = [Problem(*each) for each in said["problems"]]
            return [problem_list(found)], [], text, [each.path for each in found]
        if state.view.sweep:
            return self._sweep(state, mode), [], "", []
        answers = {
            letter: self._whatifs.ask(state.overrides(setup)) for letter, setup in state.setups.items()
        }
        wrong = [
            name
            for letter, answer in answers.items()
            for problem in answer.problems
            for name in state.to_blame(problem, letter)
        ]
        return results(answers, state, mode), summaries(answers), text, wrong

    def curves(self, ran: Mapping[str, Any], mode: Any, client: str) -> list[Any] | None:
        """Return the charts over the load; None when the page waits for another state by now."""
        self._latest[client] = ran
        state, _ = states.State.read(ran["query"])
        if state.view.sweep or ran["problems"]:
            return []
        curve = load_curve(self._whatifs, state, lambda: self._latest.get(client) is ran)
        if self._latest.get(client) is not ran:
            return None
        return (
            [] if curve is None else [html.Div(cards(over_loads(curve), mode, "curve"), className="charts")]
        )

    def _sweep(self, state: states.State, mode: Any) -> list[Any]:
        name = str(state.view.sweep)
        if name not in self._loaded:
            return [problem_list([Problem("sweep", name, "is not loaded")])]
        if found := out_of_bounds(state):
            return [problem_list(found)]
        judge = judge_of(state)
        sweep = self._loaded[name].sweep
        drawing, charts = of_sweep(self._loaded[name], judge)
        lead = f"{sweep.question} {counted(len(sweep.table), 'run')}; {judge.told()}."
        return [
            html.P(lead.strip(), className="lead"),
            legend(drawing),
            html.Div(cards(charts, mode, "curve"), className="charts two"),
        ]


def create_app(loaded: Mapping[str, Loaded], whatifs: WhatIfs) -> dash.Dash:
    """Return the application; it fetches nothing from other hosts."""
    app = dash.Dash(
        __name__,
        title="servesim dashboard",
        update_title="",
        serve_locally=True,
        suppress_callback_exceptions=True,
        index_string=document(),
    )
    app.layout = partial(layout, list(loaded))
    connect_controls(app, loaded)
    _connect_results(app, Dashboard(loaded, whatifs))
    connect_browser(app)
    return app


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
        *parts, wrong = dashboard.shown(said, mode)
        return *parts, said | {"mode": mode, "wrong": wrong}

    @app.callback(
        Output("curves", "children"), Output("drawn", "data"), Input("ran", "data"), State("visitor", "data")
    )
    def draw(ran: dict[str, Any] | None, client: str) -> Any:
        if ran is None:
            raise PreventUpdate
        drawn = dashboard.curves(ran, ran["mode"], client)
        return (no_update, no_update) if drawn is None else (drawn, ran["query"])
