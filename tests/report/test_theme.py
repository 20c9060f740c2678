"""Colours can be seen, and told apart, on light and dark."""

from itertools import combinations
from typing import get_args

import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.report.theme import (
    INKS,
    NEUTRAL,
    PALETTE,
    Mode,
    blank,
    faint,
    figure_of,
    logarithmic,
    plain,
    template,
)

MODES = get_args(Mode)

#: Projections of linear RGB onto what people without red, green or blue cones see: Machado, Oliveira and
#: Fernandes, "A physiologically-based model for simulation of color vision deficiency", 2009, severity 1.
DEFICIENCIES = {
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.01182, 0.04294, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.3039),
    ),
}


def linear(colour: str) -> tuple[float, float, float]:
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return red, green, blue


def luminance(colour: str) -> float:
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of WCAG 2.1."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("mode", MODES)
def test_text_is_legible_and_data_visible(mode: Mode) -> None:
    ink = INKS[mode]
    assert contrast(ink.text, ink.card) > 12
    assert contrast(ink.muted, ink.card) > 4.5
    assert all(contrast(hue, ink.card) > 2 for hue in (*PALETTE, NEUTRAL))


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_series_can_be_told_apart_without_all_cones(deficiency: str) -> None:
    def seen(colour: str) -> list[float]:
        return [
            max(0.0, sum(share * part for share, part in zip(row, linear(colour), strict=True))) ** (1 / 2.2)
            for row in DEFICIENCIES[deficiency]
        ]

    for one, other in combinations(PALETTE, 2):
        assert sum((a - b) ** 2 for a, b in zip(seen(one), seen(other), strict=True)) ** 0.5 > 0.1, (
            one,
            other,
        )


@pytest.mark.parametrize("mode", MODES)
def test_a_template_is_one_of_plotly(mode: Mode) -> None:
    figure = go.Figure(layout={"template": template(mode)})
    assert figure.layout.template.layout.paper_bgcolor == INKS[mode].card


def test_a_blank_figure_has_titles_and_takes_more() -> None:
    figure = blank(x="Time (s)", y="Tokens", xaxis=logarithmic(), height=123)
    assert (figure.layout.xaxis.title.text, figure.layout.xaxis.type) == ("Time (s)", "log")
    assert (figure.layout.yaxis.title.text, figure.layout.height) == ("Tokens", 123)


def test_a_faint_colour_is_the_same_one() -> None:
    assert faint("#0072B2", 0.5) == "rgba(0,114,178,0.5)"


def test_plain_text_is_no_markup() -> None:
    assert plain("a<b>c</b> & d") == "a&lt;b&gt;c&lt;/b&gt; &amp; d"


@given(low=st.floats(1e-5, 1e9), ratio=st.floats(1, 1e6))
def test_ticks_of_a_logarithmic_axis_are_figures_that_are_read_at_once(low: float, ratio: float) -> None:
    """0.2, never 200m; and enough of them within the values, or else Plotly is to find some."""
    axis = logarithmic([low, low * ratio])
    ticks = axis.get("tickvals", [])
    assert bool(ticks) == ("nticks" not in axis)
    for tick, text in zip(ticks, axis.get("ticktext", []), strict=True):
        letter = text[-1] if text[-1] in "kMGT\u00b5" else ""
        size = {"": 1, "\u00b5": 1e-6, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}[letter]
        assert float(text.removesuffix(letter)) * size == pytest.approx(tick)
    if ticks and ratio >= 150:
        assert sum(low <= tick <= low * ratio for tick in ticks) >= 2


def test_seconds_have_no_prefix() -> None:
    assert {"0.2", "0.5", "1"} <= set(logarithmic([0.15, 3.0])["ticktext"])
    assert "ticktext" not in logarithmic([0.15, 3.0], exponentformat="power")
    assert [figure_of(value) for value in (0.02, 20, 2e3, 5e6, 1e9, 2e12, 5e-5)] == [
        *("0.02", "20", "2k", "5M", "1G", "2T", "50\u00b5")
    ]
