"""Every point is drawn once, lines lead through no hole, and the front is the Pareto front."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servesim.frontier.knee import knee
from servesim.frontier.pareto import on_front
from servesim.report.frontier.curves import curves
from servesim.report.frontier.style import styles
from servesim.report.metrics import COST, GOODPUT, INTERACTIVITY, OUTPUT, TTFT_P99, Metric
from tests.report.frontier.made import RATE, points_of, sweep_table
from tests.report.frontier.test_bands import holds, outlines

LOAD = Metric("load", "Rate (requests/s)", "requests/s")
PAIRS = [
    (INTERACTIVITY, OUTPUT),
    (TTFT_P99, OUTPUT),
    (INTERACTIVITY, COST),
    (LOAD, TTFT_P99),
    (LOAD, GOODPUT),
]
RATES = (1.0, 2.0, 4.0, 8.0, 16.0)

#: Which of 4 configurations x 5 rates fail, and which are saturated.
kinds = st.tuples(st.sets(st.integers(0, 19)), st.sets(st.integers(0, 19)))


def made(failing=(), saturated=(), **options):
    def number(variant, gpu, rate):
        return (("one", "two").index(variant) * 2 + ("h100", "l40s").index(gpu)) * 5 + RATES.index(rate)

    table = sweep_table(
        rates=RATES,
        fails=lambda variant, gpu, rate, seed: number(variant, gpu, rate) in failing,
        saturated=lambda variant, gpu, rate, seed: number(variant, gpu, rate) in saturated,
        **options,
    )
    return points_of(table)


def drawn(points, x, y, **options):
    return curves(points, x, y, styles(points.config.nunique()), **options)


def markers(figure):
    return [trace for trace in figure.data if trace.customdata is not None and trace.name != "failed"]


def segments(figure):
    """Yield the ends of every straight line that joins points."""
    for trace in figure.data:
        if trace.name == "line":
            ends = np.column_stack([trace.x, trace.y])
            for one, other in pairwise(ends):
                if not np.isnan([one, other]).any():
                    yield tuple(one), tuple(other), trace


@settings(max_examples=10, deadline=None)
@given(kind=kinds)
def test_every_point_with_figures_is_drawn_once_where_its_figures_are(kind):
    points = made(*kind)
    for x, y in PAIRS:
        figure = drawn(points, x, y, front=True)
        seen = [row for trace in markers(figure) for row in trace.customdata]
        assert sorted(seen) == points.index[points.state != "failed"].tolist()
        for trace in markers(figure):
            rows = points.loc[list(trace.customdata)]
            np.testing.assert_allclose(trace.x, rows[x.column] * x.scale)
            np.testing.assert_allclose(trace.y, rows[y.column] * y.scale)
            assert rows.config.nunique() == 1


@settings(max_examples=10, deadline=None)
@given(kind=kinds)
def test_lines_join_exactly_the_neighbours_with_no_hole_between_them(kind):
    points = made(*kind)
    config, hole = points.config.to_numpy(), points.hole.to_numpy()
    expected = np.flatnonzero((config[:-1] == config[1:]) & ~hole[:-1] & ~hole[1:])
    for x, y in PAIRS:
        xs, ys = points[x.column] * x.scale, points[y.column] * y.scale
        place = {each: row for row, each in enumerate(zip(config, xs, ys, strict=True))}
        joined = [
            tuple(place[int(trace.legendgroup[1:]), *end] for end in ends)
            for *ends, trace in segments(drawn(points, x, y))
        ]
        assert sorted(joined) == [(row, row + 1) for row in expected]


def test_a_seed_that_failed_breaks_the_line_but_the_others_are_drawn():
    table = sweep_table(rates=RATES, fails=lambda variant, gpu, rate, seed: rate == 4 and seed == 0)
    figure = drawn(points_of(table), LOAD, OUTPUT)
    assert sum(4.0 in trace.x for trace in markers(figure)) == 4
    assert not any(4.0 in (one[0], other[0]) for one, other, _ in segments(figure))


def test_lines_to_and_from_saturated_points_are_dotted_and_their_markers_open():
    points = made(saturated={3, 4})
    figure = drawn(points, LOAD, OUTPUT)
    for one, other, trace in segments(figure):
        rows = points[(points.config == int(trace.legendgroup[1:])) & points.load.isin([one[0], other[0]])]
        assert (trace.line.dash == "dot") == (rows.state == "saturated").any()
    for trace in markers(figure):
        for row, symbol in zip(trace.customdata, trace.marker.symbol, strict=True):
            assert symbol.endswith("-open") == (points.state[row] == "saturated")


@pytest.mark.parametrize(("x", "y"), PAIRS[:3])
@settings(max_examples=5, deadline=None)
@given(kind=kinds)
def test_the_front_is_the_pareto_front_of_all_clean_points(x, y, kind):
    points = made(*kind)
    clean = points[points.state == "clean"]
    front = clean[on_front(clean[[x.column, y.column]].to_numpy(), [x.best > 0, y.best > 0])]
    figure = drawn(points, x, y, front=True)
    lines = [trace for trace in figure.data if trace.name == "Pareto front"]
    assert len(lines) == (len(front) > 0)
    if lines:
        assert set(zip(lines[0].x, lines[0].y, strict=True)) == {
            (row[x.column] * x.scale, row[y.column] * y.scale) for _, row in front.iterrows()
        }
    largest = [
        row
        for trace in markers(figure)
        for row, size in zip(trace.customdata, trace.marker.size, strict=True)
        if size == 10
    ]
    assert sorted(largest) == front.index.tolist()


def test_each_traffic_has_a_front_of_its_own_points_alone():
    table = sweep_table(rates=RATES).rename(columns={"gpu": "workload.lengths.input"})
    points = points_of(table)
    fronts = [
        trace for trace in drawn(points, INTERACTIVITY, OUTPUT, front=True).data if "front" in trace.name
    ]
    assert ["".join(trace.text) for trace in fronts] == ["input=h100", "input=l40s"]
    for trace, (_, own) in zip(fronts, points.groupby("traffic"), strict=True):
        own = own[on_front(own[[INTERACTIVITY.column, OUTPUT.column]].to_numpy(), [True, True])]
        assert set(trace.y) == set(own[OUTPUT.column] * OUTPUT.scale)
    assert len({tuple(trace.y) for trace in fronts}) == 2


def test_no_point_of_the_front_is_fainter_than_one_behind_it():
    points = made()
    opacities = {True: set(), False: set()}
    for trace in markers(drawn(points, TTFT_P99, OUTPUT, front=True)):
        for size, opacity in zip(trace.marker.size, trace.marker.opacity, strict=True):
            opacities[size == 10].add(opacity)
    assert min(opacities[True]) > max(opacities[False])


@pytest.mark.parametrize(("x", "y"), PAIRS)
def test_the_band_of_a_configuration_holds_the_means_of_its_points(x, y):
    points = made(failing={7})
    figure = drawn(points, x, y)
    for trace in markers(figure):
        (shade,) = [
            each for each in figure.data if each.name == "interval" and each.legendgroup == trace.legendgroup
        ]
        made_of = outlines(_placed(shade.x, x), _placed(shade.y, y))
        for mean in zip(_placed(trace.x, x), _placed(trace.y, y), strict=True):
            assert any(holds(outline, mean) for outline in made_of)


def _placed(values, metric):
    return np.log10(values) if metric.logarithmic else np.asarray(values)


def test_one_seed_has_no_bands():
    figure = drawn(made(seeds=(0,)), INTERACTIVITY, OUTPUT)
    assert [trace for trace in figure.data if trace.name == "interval"] == []


def test_what_failed_stands_below_its_load():
    points = made(failing={2, 11})
    crosses = [trace for trace in drawn(points, LOAD, OUTPUT).data if trace.name == "failed"]
    assert sorted(row for trace in crosses for row in trace.customdata) == [2, 11]
    assert [float(trace.x[0]) for trace in crosses] == points.load[[2, 11]].tolist()
    assert [trace for trace in drawn(points, INTERACTIVITY, OUTPUT).data if trace.name == "failed"] == []


def test_knees_are_those_of_the_curves_that_meet_the_slo_somewhere():
    points = made()
    points.loc[points.config == 1, "met"] = 0
    rings = {t.legendgroup: t.x[0] for t in drawn(points, LOAD, GOODPUT, knees=True).data if t.name == "knee"}
    expected = {}
    for config, rows in points.groupby("config"):
        turn = knee(rows.load, rows[GOODPUT.column])
        if turn is not None and config != 1:
            expected[f"c{config}"] = rows.load.iloc[turn]
    assert rings == expected
    assert rings


@pytest.mark.parametrize(
    ("x", "y", "inside"),
    [
        (TTFT_P99, OUTPUT, lambda x, y: x <= 0.2),
        (INTERACTIVITY, OUTPUT, lambda x, y: x >= 1 / 0.03),
        (LOAD, TTFT_P99, lambda x, y: y <= 0.2),
    ],
)
def test_a_point_is_shaded_where_its_figure_is_within_the_limit(x, y, inside):
    points = made()
    figure = drawn(points, x, y, limits={"ttft_s": 0.2, "tpot_s": 0.03})
    (shade,) = figure.layout.shapes
    held = [
        bool(shade.x0 <= px <= shade.x1 and shade.y0 <= py <= shade.y1)
        for trace in markers(figure)
        for px, py in zip(trace.x, trace.y, strict=True)
    ]
    assert held == [
        inside(px, py) for trace in markers(figure) for px, py in zip(trace.x, trace.y, strict=True)
    ]
    assert len(set(held)) == 2


def test_without_a_limit_nothing_is_shaded():
    assert not drawn(made(), TTFT_P99, OUTPUT, limits={"e2e_s": 1.0}).layout.shapes
    assert not drawn(made(), TTFT_P99, OUTPUT, limits={"ttft_s": 1e-9}).layout.shapes


def test_what_is_not_positive_has_no_place_on_a_logarithmic_axis():
    points = made()
    points.loc[0, TTFT_P99.column] = 0.0
    seen = [row for trace in markers(drawn(points, TTFT_P99, OUTPUT)) for row in trace.customdata]
    assert 0 not in seen
    assert len(seen) == len(points) - 1


def test_a_sweep_without_any_figures_is_an_empty_chart():
    points = points_of(sweep_table(fails=lambda *_: True))
    assert markers(drawn(points, INTERACTIVITY, OUTPUT, front=True)) == []


def test_without_a_load_no_line_is_drawn():
    points = points_of(sweep_table(rates=()), None)
    figure = drawn(points, INTERACTIVITY, OUTPUT, front=True)
    assert list(segments(figure)) == []
    assert len(markers(figure)) == 4


def test_configurations_beyond_those_with_a_style_have_thin_grey_lines_and_no_bands():
    points = points_of(sweep_table(variants=[f"v{n}" for n in range(9)]))
    chosen = styles(points.config.nunique(), first=[17])
    assert [style.plain for style in chosen].count(True) == 6
    assert not chosen[17].plain
    assert len({style for style in chosen if not style.plain}) == 12
    figure = curves(points, INTERACTIVITY, OUTPUT, chosen)
    shaded = {trace.legendgroup for trace in figure.data if trace.name == "interval"}
    assert shaded == {f"c{config}" for config, style in enumerate(chosen) if not style.plain}


def test_no_two_configurations_with_a_style_look_alike():
    chosen = styles(12)
    assert len({(style.colour, style.symbol) for style in chosen}) == 12
    assert len({(style.colour, style.dash) for style in chosen}) == 12


def test_axes_say_their_units():
    for x, y in PAIRS:
        layout = drawn(made(), x, y).layout
        assert layout.xaxis.title.text == x.title
        assert layout.yaxis.title.text == y.title
        assert "(" in x.title


def test_the_load_of_the_made_table_is_its_rate():
    points = made()
    assert points.load.tolist() == points[RATE].tolist()
