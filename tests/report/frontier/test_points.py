"""One row per configuration and load, averaged over the seeds, and how it went."""

import numpy as np
import pandas as pd
import pytest

from servesim.report.frontier.drawing import Drawing, Sweep
from servesim.report.frontier.points import drawn_points, load_of, short_names
from servesim.report.metrics import GOODPUT, INTERACTIVITY
from servesim.report.metrics import OUTPUT as METRIC
from tests.report.frontier.made import OUTPUT, RATE, TTFT, points_of, sweep_table


def test_there_is_one_row_per_configuration_and_load_with_the_mean_over_seeds():
    table = sweep_table()
    points = points_of(table)
    means = table.groupby(["variant", "gpu", RATE])[OUTPUT].mean()
    assert len(points) == len(means) == 16
    for row in points.to_dict("records"):
        assert row[OUTPUT] == pytest.approx(means[row["variant"], row["gpu"], row[RATE]])
        assert row[f"{OUTPUT}.low"] < row[OUTPUT] < row[f"{OUTPUT}.high"]


@pytest.mark.parametrize(("begun", "unit"), [(None, "requests/s"), (40, "sessions/s")])
def test_the_rate_of_conversations_is_that_of_sessions(begun: int | None, unit: str):
    table = sweep_table() if begun is None else sweep_table().assign(**{"sessions.begun": begun})
    assert Drawing.of(Sweep(table, "study")).load_axis().title == f"Rate ({unit})"


def test_configurations_are_numbered_in_order_and_their_loads_ascend():
    table = sweep_table(rates=(8.0, 1.0, 4.0))
    points = points_of(table)
    assert points.config.tolist() == sorted(points.config)
    assert all(rows.load.is_monotonic_increasing for _, rows in points.groupby("config"))
    assert points.groupby("config").label.first().tolist() == [
        "one, h100",
        "one, l40s",
        "two, h100",
        "two, l40s",
    ]


def test_what_all_points_share_is_not_in_the_labels():
    points = points_of(sweep_table(variants=("",), gpus=("h100",)))
    assert set(points.label) == {"all points"}
    table = sweep_table(variants=("",), gpus=("h100",)).assign(**{"cluster.tensor_parallel_size": 2})
    table["cluster.tensor_parallel_size"] = np.where(table[RATE] > 2, 4, 2)
    columns = ["point", "variant", "cluster.tensor_parallel_size", RATE]
    points = points_of(table[[*columns, *(name for name in table if name not in {*columns, "gpu"})]])
    assert set(points.label) == {"TP=2", "TP=4"}


def test_how_a_point_went_is_the_worst_of_its_seeds():
    table = sweep_table(
        variants=("one",),
        gpus=("h100",),
        rates=(1.0, 2.0, 3.0, 4.5, 5.0),
        seeds=range(4),
        fails=lambda variant, gpu, rate, seed: rate == 2 or (rate == 3 and seed == 1),
        unclean=lambda variant, gpu, rate, seed: rate in (1, 4.5) and seed == 0,
        saturated=lambda variant, gpu, rate, seed: rate == 5 and seed < 2,
    )
    points = points_of(table)
    assert points.state.tolist() == ["clean", "failed", "not clean", "not clean", "saturated"]
    assert points.hole.tolist() == [False, True, True, False, False]
    assert points.failed.tolist() == [0, 4, 1, 0, 0]
    assert np.isnan(points[TTFT][1])
    assert points[TTFT].notna().sum() == 4


def test_the_interval_of_a_share_ends_at_0_and_at_all():
    table = sweep_table()
    table["goodput.attainment"] = table.seed.map({0: 1.0, 1: 1.0, 2: 0.9})
    points = points_of(table)
    assert (points["goodput.attainment.high"] == 1.0).all()
    assert (points["goodput.attainment.low"] < points["goodput.attainment"]).all()
    assert (points[f"{OUTPUT}.high"] > 1.0).all()


def test_points_that_lost_too_many_requests_are_left_out_where_the_slo_is_shaded():
    drawing = Drawing.of(Sweep(sweep_table(unclean=lambda *_: True), "study"))
    lost = set(np.flatnonzero(drawing.points.state == "not clean"))
    assert lost
    for x, left_out in ((INTERACTIVITY, True), (GOODPUT, False)):
        chart = drawing.front("", x, METRIC, "")
        drawn = {row for trace in chart.figure.data if trace.mode == "markers" for row in trace.customdata}
        assert drawn == set(drawing.points.index) - (lost if left_out else set())
        assert ("Left out" in chart.caption) == left_out


def test_a_minority_of_saturated_seeds_does_not_make_a_point_saturated():
    table = sweep_table(saturated=lambda variant, gpu, rate, seed: seed == 0)
    assert set(points_of(table).state) == {"clean"}


def test_with_one_seed_there_are_no_intervals():
    points = points_of(sweep_table(seeds=(0,)))
    assert points.filter(regex=r"\.(low|high)$").isna().all(axis=None)


def test_a_closed_loop_knows_nothing_of_saturation():
    table = sweep_table().assign(saturated=None)
    assert set(points_of(table).state) == {"clean"}


def test_a_figure_that_the_table_lacks_is_missing_everywhere():
    table = sweep_table().drop(columns=[TTFT])
    assert points_of(table)[TTFT].isna().all()
    assert drawn_points(table, RATE, ["no.such.figure"])["no.such.figure"].isna().all()


def test_a_sweep_of_which_every_point_failed_has_points_without_figures():
    points = points_of(sweep_table(fails=lambda *_: True))
    assert set(points.state) == {"failed"}
    assert len(points) == 16


def test_every_point_keeps_the_commands_of_its_seeds():
    table = sweep_table()
    commands = [command for each in points_of(table).commands for command in each]
    assert commands == table.command.tolist()


def test_the_load_is_the_declared_axis_or_the_last_one_that_is_a_load():
    table = sweep_table()
    assert load_of(table) == RATE
    assert load_of(sweep_table(rates=())) is None
    assert load_of(table.rename(columns={RATE: "my.load"}), "my.load") == "my.load"


def test_without_a_load_every_configuration_is_one_point():
    points = points_of(sweep_table(rates=()), None)
    assert points.config.tolist() == [0, 1, 2, 3]
    assert points.load.isna().all()


def test_short_names_are_as_long_as_it_takes():
    keys = ["cluster.prefill.replicas", "cluster.decode.replicas", "gpu"]
    assert list(short_names(keys).values()) == ["prefill.replicas", "decode.replicas", "gpu"]
    assert short_names(["workload/lengths"]) == {"workload/lengths": "lengths"}


def test_the_order_of_the_rows_of_the_table_within_a_point_does_not_matter():
    table = sweep_table()
    turned = table.sort_values("seed", ascending=False, kind="stable")
    order = turned.sort_values("point", key=lambda points: points // 3, kind="stable")
    numbers = points_of(table).select_dtypes("number").drop(columns="point")
    pd.testing.assert_frame_equal(points_of(order).select_dtypes("number")[numbers.columns], numbers)
