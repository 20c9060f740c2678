"""The page of the dashboard as it starts, before anything was asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args
from uuid import uuid4

from dash import dcc, html

from servesim.report.dashboard.sidebar import sidebar
from servesim.report.page import style_sheet
from servesim.report.theme import Mode, template

_DOCUMENT = """<!DOCTYPE html>
<html lang="en">
<head>{{%metas%}}<title>{{%title%}}</title>{{%favicon%}}<style>{style}</style>{{%css%}}</head>
<body>{{%app_entry%}}<footer hidden>{{%config%}}{{%scripts%}}{{%renderer%}}</footer></body>
</html>
"""


def document() -> str:
    """Return the HTML around the page, with the style sheet of the report's pages."""
    return _DOCUMENT.format(style=style_sheet())


def layout(sweeps: Sequence[str]) -> html.Div:
    """Return the page as it starts; each that is opened is a client of its own."""
    return html.Div(
        [
            dcc.Location(id="url", refresh=False),
            *(dcc.Store(id=name) for name in ("state", "mode", "ran", "drawn")),
            dcc.Store(
                id="templates", data={mode: template(mode).to_plotly_json() for mode in get_args(Mode)}
            ),
            dcc.Store(id="visitor", data=uuid4().hex),
            sidebar(sweeps),
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
