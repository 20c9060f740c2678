"""The controls of the dashboard: one for each field of its state, some with a slider beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import log10
from typing import Any

from dash import dcc, html

from servesim.config.groups import Groups
from servesim.report.dashboard.state import KINDS, B, Demand, Setup, State, Value

#: What follows the name of a control in the id of its slider.
SLIDER = "-slider"

_AS_IS = "the model's"
#: Lengths whose files say all there is to say, and those that the controls below the menu set.
LENGTHS = ("conversation", "code", "reasoning", "long_context", "fixed")

_DTYPES = ("bf16", "fp8", "int4")


@dataclass(frozen=True)
class Control:
    """How one value is set: from a menu, or as a number, with a logarithmic slider where it has ends."""

    label: str
    options: Sequence[str] = ()
    ends: tuple[float, float] | None = None
    empty: str = ""
    half: bool = True

    def component(self, name: str, value: Value) -> html.Div:
        """Return the control under its label."""
        parts: list[Any] = [html.Label(self.label, htmlFor=name)]
        if self.options:
            parts.append(self._menu(name, value))
        else:
            number = dcc.Input(
                id=name,
                type="text" if self.empty else "number",  # of the two, only text can be cleared
                value=in_control(name, value),
                debounce=0.3,
                step="any",
                placeholder=self.empty,
            )
            parts.append(html.Div([number, *self._slider(name, value)], className="number"))
        return html.Div(parts, className="control half" if self.half else "control", id=f"{name}-control")

    def _menu(self, name: str, value: Value) -> dcc.Dropdown:
        return dcc.Dropdown(
            id=name,
            options=self.offered(name),
            value=in_control(name, value),
            clearable=False,
            searchable=False,
        )

    def offered(self, name: str) -> list[dict[str, Any]]:
        """Return what the menu offers: labels and values."""
        empty = [{"label": self.empty, "value": ""}] if self.empty else []
        return empty + [{"label": option, "value": _typed(name, option)} for option in self.options]

    def _slider(self, name: str, value: Value) -> list[dcc.Slider]:
        if self.ends is None:
            return []
        low, high = map(log10, self.ends)
        return [
            dcc.Slider(
                id=name + SLIDER,
                min=low,
                max=high,
                step=(high - low) / 200,
                value=position(name, value),
                marks=None,
                allow_direct_input=False,
                updatemode="mouseup",
            )
        ]


def _typed(name: str, option: str) -> Value:
    return int(option) if KINDS[name] is int else option


def _controls() -> dict[str, Control]:
    groups = Groups.of(None)
    return {
        "model": Control("Model", groups.options("model"), half=False),
        "weights": Control("Weights", _DTYPES, empty=_AS_IS),
        "gpu": Control("GPU", groups.options("gpu")),
        "tp": Control("TP (GPUs each)", ("1", "2", "4", "8")),
        "scheduler": Control("Scheduler", groups.options("scheduler")),
        "kv": Control("KV cache", ("auto", "bf16", "fp8")),
        "replicas": Control("Replicas"),
        "prefill": Control("Prefill replicas"),
        "decode": Control("Decode replicas"),
        "price": Control("$ per GPU-hour (empty: the GPU's own)", ends=(0.2, 20.0), empty="own", half=False),
        "rate": Control("Requests per second", ends=(0.1, 200.0), half=False),
        "lengths": Control("Lengths", LENGTHS, half=False),
        "input": Control("Tokens in"),
        "output": Control("Tokens out"),
        "requests": Control("Requests"),
        "seed": Control("Seed"),
        "ttft": Control("TTFT, s (empty: no limit)", ends=(0.02, 20.0), empty="none", half=False),
        "tpot": Control("TPOT, s (empty: no limit)", ends=(0.002, 1.0), empty="none", half=False),
        "attainment": Control("Share of requests to meet them", ends=(0.5, 1.0), half=False),
        "sweep_price": Control(
            "$ per GPU-hour (empty: as run)", ends=(0.2, 20.0), empty="as run", half=False
        ),
    }


CONTROLS: dict[str, Control] = _controls()

#: The names of all controls, and of those with a slider.
VALUES = tuple(KINDS)
SLIDERS = tuple(name for name in VALUES if name != "sweep" and CONTROLS[name.removeprefix(B)].ends)


#: The names of all menus.
MENUS = tuple(name for name in VALUES if name == "sweep" or CONTROLS[name.removeprefix(B)].options)


def options(name: str, value: Value, sweeps: Sequence[str]) -> list[dict[str, Any]]:
    """Return what a menu offers; a value of a URL that is not among it is added, so that it is kept."""
    offered = _views(sweeps) if name == "sweep" else CONTROLS[name.removeprefix(B)].offered(name)
    shown = in_control(name, value)
    known = any(each["value"] == shown for each in offered)
    return offered if known else [*offered, {"label": str(shown), "value": shown}]


def in_control(name: str, value: Value) -> Value:
    """Return a value as its control has it: no value is no text, in menus, too."""
    return "" if value is None else value


def position(name: str, value: Value) -> float:
    """Return where the slider of a value stands: within its ends, and at the low one without a value."""
    ends = CONTROLS[name.removeprefix(B)].ends
    assert ends is not None
    low, high = ends
    number = float(value) if isinstance(value, (int, float)) else low
    return log10(min(max(number, low), high))


def slid(place: float) -> float:
    """Return the value where a slider stands: three digits of it."""
    return float(f"{10.0**place:.3g}")


def sidebar(sweeps: Sequence[str]) -> html.Div:
    """Return all controls, as the state starts."""
    values = State().values()
    setups = [_panel(f"setup-{side or 'a'}", _names(Setup), values, side) for side in ("", B)]
    return html.Div(
        [
            *_view(sweeps),
            html.Div(_sides(), id="sides"),
            *setups,
            html.Div(
                [html.H2("Traffic"), *_row(_names(Demand)[:6], values)], id="traffic", className="panel"
            ),
            html.Div([html.H2("SLO"), *_row(_names(Demand)[6:], values)], className="panel"),
            html.Div([html.H2("Price"), *_row(["sweep_price"], values)], id="prices", className="panel"),
        ],
        id="sidebar",
    )


def _view(sweeps: Sequence[str]) -> list[Any]:
    """Return the menu of what is shown; there is nothing to choose without sweeps."""
    menu = dcc.Dropdown(id="sweep", options=_views(sweeps), value="", clearable=False, searchable=False)
    return [html.Div(menu, id="view", className="" if sweeps else "unused")]


def _views(sweeps: Sequence[str]) -> list[dict[str, Any]]:
    return [{"label": "What-if", "value": ""}, *({"label": name, "value": name} for name in sweeps)]


def _sides() -> list[Any]:
    return [
        html.H2("Configuration"),
        dcc.RadioItems(id="side", options=["A", "B"], value="A", inline=True),
        dcc.Checklist(id="compare", options=[{"label": "compare", "value": "on"}], value=[]),
    ]


def _names(part: type) -> list[str]:
    return [each.name for each in fields(part)]


def _panel(name: str, names: Sequence[str], values: Mapping[str, Value], before: str) -> html.Div:
    return html.Div(_row(names, values, before), id=name.rstrip("-"), className="panel")


def _row(names: Sequence[str], values: Mapping[str, Value], before: str = "") -> list[html.Div]:
    return [CONTROLS[name].component(before + name, values[before + name]) for name in names]
