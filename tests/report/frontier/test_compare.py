"""Configurations side by side: every one has a row, with its interval, and says when it failed."""

import numpy as np
import pytest

from servesim.frontier.replications import compared
from servesim.report.frontier.compare import differences, side_by_side
from servesim.report.frontier.style import styles
from servesim.report.metrics import OUTPUT, TTFT_P99
from tests.report.frontier.made import points_of, sweep_table


def rows(figure):
    return {trace.y[0]: trace for trace in figure.data}


@pytest.mark.parametrize("metric", [OUTPUT, TTFT_P99])
def test_every_configuration_has_a_row_with_its_mean_and_interval(metric):
    points = points_of(sweep_table(rates=()), None)
    figure = side_by_side(points, metric, styles(4))
    assert list(rows(figure)) == points.label.tolist()
    for row in points.to_dict("records"):
        trace = rows(figure)[row["label"]]
        mean, low, high = (row[f"{metric.column}{end}"] * metric.scale for end in ("", ".low", ".high"))
        assert trace.x[0] == pytest.approx(mean)
        assert trace.x[0] + trace.error_x.array[0] == pytest.approx(high)
        assert trace.x[0] - trace.error_x.arrayminus[0] == pytest.approx(low)
    assert figure.layout.xaxis.title.text == metric.title


def test_what_failed_has_a_row_that_says_so():
    table = sweep_table(rates=(), fails=lambda variant, gpu, rate, seed: gpu == "l40s")
    points = points_of(table, None)
    figure = side_by_side(points, OUTPUT, styles(4))
    assert set(rows(figure)) == {"one, h100", "two, h100"}
    assert [note.y for note in figure.layout.annotations] == ["one, l40s", "two, l40s"]
    assert list(figure.layout.yaxis.categoryarray) == points.label.tolist()


def test_one_seed_has_no_error_bars():
    points = points_of(sweep_table(rates=(), seeds=(0,)), None)
    assert not any(trace.error_x.visible for trace in side_by_side(points, OUTPUT, styles(4)).data)


def test_names_are_shown_as_they_are_written():
    points = points_of(sweep_table(variants=("a<b>", "&"), gpus=("h100",), rates=()), None)
    assert [trace.y[0] for trace in side_by_side(points, OUTPUT, styles(2)).data] == ["a&lt;b&gt;", "&amp;"]


def test_a_difference_is_filled_when_its_interval_leaves_0_out():
    table = sweep_table(rates=(), gpus=("h100",), variants=("base", "same", "other"))
    same, base = table.variant == "same", table.variant == "base"
    noise = np.array([1.0, -1.0, 0.5])
    table.loc[same, OUTPUT.column] = table.loc[base, OUTPUT.column].to_numpy() + noise
    known = compared(table, OUTPUT.column, "base")
    named = known.assign(config=[1, 2], label=known.variant)
    figure = differences(named, OUTPUT, "base", styles(3))
    drawn = rows(figure)
    assert drawn["same"].marker.symbol.endswith("-open")
    assert not drawn["other"].marker.symbol.endswith("-open")
    assert drawn["same"].x[0] == pytest.approx(noise.mean())
    assert [shape.x0 for shape in figure.layout.shapes] == [0]
