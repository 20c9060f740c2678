"""What the browser does by itself, without asking the server: the functions of assets/dashboard.js."""

from __future__ import annotations

import dash
from dash import ALL, ClientsideFunction, Input, Output, State


def connect_browser(app: dash.Dash) -> None:
    """Connect what needs no answer.

    Light and dark, the panels, marks on what is wrong, the copy button, the legend of a sweep's charts and
    clicks on their points.
    """

    def own(name: str) -> ClientsideFunction:
        return ClientsideFunction("servesim", name)

    app.clientside_callback(
        own("mode"),
        Output("mode", "data"),
        Input("toggle", "n_clicks"),
        State("mode", "data"),
        State("templates", "data"),
    )
    app.clientside_callback(
        own("panels"), Output("page", "className"), Input("state", "data"), Input("side", "value")
    )
    app.clientside_callback(own("wrong"), Input("ran", "data"))
    app.clientside_callback(
        own("copy"),
        Output("copy", "children"),
        Input("copy", "n_clicks"),
        Input("command", "children"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        own("shown"),
        Output({"type": "curve", "name": ALL}, "figure"),
        Input("shown", "value"),
        State({"type": "curve", "name": ALL}, "figure"),
        State("mode", "data"),
        State("templates", "data"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        own("picked"),
        Output("picked", "children"),
        Input({"type": "curve", "name": ALL}, "clickData"),
        State({"type": "curve", "name": ALL}, "figure"),
        prevent_initial_call=True,
    )
