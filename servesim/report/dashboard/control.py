"""How a value is set on the page: from a menu, or as a number, some with a slider beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log10
from typing import Any

from dash import dcc, html

from servesim.report.dashboard.part import Value, written

#: What follows the name of a control in the id of its slider, and in that of all it consists of.
SLIDER, WHOLE = "-slider", "-control"


@dataclass(frozen=True)
class Control:
    """How one value is set: from a menu, or as a number, with a logarithmic slider where it has ends.

    ``empty`` says what no value means: a menu then begins with it, and a number may be left out. Where the
    configuration files say what a value is of itself, that is shown in its place. ``words`` are labels of
    options that do not speak for themselves.
    """

    label: str
    options: Sequence[str] = ()
    ends: tuple[float, float] | None = None
    empty: str = ""
    half: bool = True
    words: Mapping[str, str] = field(default_factory=dict)
    kind: type = str

    def component(self, name: str, value: Value, own: Value, keys: Sequence[str], hidden: bool) -> html.Div:
        """Return the control under its label, which tells the keys that it sets."""
        parts: list[Any] = [html.Label(self.label, htmlFor=name)]
        parts.append((self._menu if self.options else self._number)(name, value, own))
        style = "control half" if self.half else "control"
        return html.Div(parts, className=style, id=f"{name}{WHOLE}", title=" ".join(keys), hidden=hidden)

    def _menu(self, name: str, value: Value, own: Value) -> dcc.Dropdown:
        return dcc.Dropdown(
            id=name,
            options=self.offered(value, own),
            value=in_control(value),
            clearable=False,
            searchable=False,
        )

    def _number(self, name: str, value: Value, own: Value) -> html.Div:
        number = dcc.Input(
            id=name,
            type="text" if self.empty else "number",  # of the two, only text can be cleared
            value=in_control(value),
            debounce=0.3,
            step="any",
            placeholder=self.stands_at(own),
        )
        return html.Div([number, *self._slider(name, own if value is None else value)], className="number")

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
                value=self.position(value),
                marks=None,
                allow_direct_input=False,
                updatemode="mouseup",
            )
        ]

    def stands_at(self, own: Value) -> str:
        """Return what is shown where there is no value: the one that it has of itself, if that is known."""
        return self.empty if own is None or not self.empty else written(own)

    def offered(self, value: Value, own: Value) -> list[dict[str, Any]]:
        """Return what the menu offers: labels and values, the present value in any case.

        A value of a URL may be none of the options; it is added, so that it is kept.
        """
        empty = [{"label": self.stands_at(own), "value": ""}] if self.empty else []
        named = [{"label": self.words.get(each, each), "value": self.kind(each)} for each in self.options]
        offered = empty + [each for each in named if not self.empty or each["value"] != own]
        shown = in_control(value)
        known = any(each["value"] == shown for each in offered)
        return offered if known else [*offered, {"label": str(shown), "value": shown}]

    def position(self, value: Value) -> float:
        """Return where the slider of a value stands: within its ends, and at the low one without a value."""
        assert self.ends is not None
        low, high = self.ends
        number = float(value) if isinstance(value, (int, float)) else low
        return log10(min(max(number, low), high))

    def slid(self, place: float) -> float:
        """Return the value where its slider stands: three digits of it, whole where it has to be."""
        value = float(f"{10.0**place:.3g}")
        return round(value) if self.kind is int else value


def in_control(value: Value) -> Value:
    """Return a value as its control holds it: no value is no text, in menus, too."""
    return "" if value is None else value
