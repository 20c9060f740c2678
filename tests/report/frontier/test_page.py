"""The page of a sweep in a browser: the traces hold the table, and a point gives its command."""

from pathlib import Path
from time import process_time

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from servesim.report.content import Chart, Choice
from servesim.report.frontier.drawing import Sweep, limits_of
from servesim.report.frontier.page import sweep_page
from tests.browser import Open, Opened, numbers
from tests.report.frontier.made import ERROR, INTERACTIVITY, OUTPUT, RATE, TTFT, sweep_table

COMPARE = (TTFT, OUTPUT)
NASTY = '</script><b>one & "two"</b>'


def fails(variant: str, gpu: str, rate: float, seed: int) -> bool:
    return (variant, gpu, rate) == ("two", "l40s", 4.0)


def saturated(variant: str, gpu: str, rate: float, seed: int) -> bool:
    return rate == 8.0 and gpu == "l40s"


def usual() -> Sweep:
    table = sweep_table(fails=fails, saturated=saturated)
    return Sweep(table, "a_study", "Which one?", ["model=x"], COMPARE, "one")


def written(sweep: Sweep, folder: Path) -> Path:
    path = folder / "index.html"
    sweep_page(sweep).write(path)
    return path


def charted(opened: Opened, chart: int) -> list[dict[str, object]]:
    """Return the traces of a chart that stand for points."""
    kinds = {"line", "interval", "Pareto front", "knee", "failed"}
    return [trace for trace in opened.traces()[chart] if trace["name"] not in kinds]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory, open_shared: Open) -> Opened:
    """The page of the usual sweep."""
    return open_shared(written(usual(), tmp_path_factory.mktemp("usual")))


def test_the_traces_hold_the_means_of_the_table(opened: Opened) -> None:
    sweep = usual()
    opened.check()
    known = sweep.table[sweep.table.status == "clean"]
    means = known.groupby(["variant", "gpu", RATE])[[INTERACTIVITY, OUTPUT]].mean()
    traces = charted(opened, 0)
    assert [trace["name"] for trace in traces] == ["one, h100", "one, l40s", "two, h100", "two, l40s"]
    for trace in traces:
        own = means.loc[tuple(str(trace["name"]).split(", "))]
        np.testing.assert_allclose(numbers(trace["x"]), own[INTERACTIVITY])
        np.testing.assert_allclose(numbers(trace["y"]), own[OUTPUT])


def press(opened: Opened, chart: int, trace: str, point: int) -> None:
    """Click a point of a drawing with the mouse."""
    opened.page.mouse.click(*hover(opened, chart, trace, point))


def hover(opened: Opened, chart: int, trace: str, point: int) -> tuple[float, float]:
    """Move the mouse onto a point of a drawing, and return where that is."""
    place = opened.page.evaluate(
        """([chart, name, point]) => {
          const gd = document.querySelector(`#chart-${chart}`);
          gd.scrollIntoView({block: "center"});
          const trace = gd._fullData.find((each) => each.name === name);
          const {xaxis, yaxis} = gd._fullLayout;
          const box = gd.getBoundingClientRect();
          return [box.left + xaxis._offset + xaxis.d2p(trace.x[point]),
                  box.top + yaxis._offset + yaxis.d2p(trace.y[point])];
        }""",
        [chart, trace, point],
    )
    opened.page.mouse.move(*place)
    opened.page.wait_for_selector(f"#chart-{chart} .hoverlayer .hovertext")
    return place[0], place[1]


def test_a_click_on_a_point_shows_its_configuration_and_the_commands_of_its_seeds(
    opened: Opened,
) -> None:
    sweep = usual()
    assert not opened.page.is_visible("#panel")
    press(opened, 1, "two, h100", 3)
    own = sweep.table[(sweep.table.variant == "two") & (sweep.table.gpu == "h100") & (sweep.table[RATE] == 8)]
    assert opened.page.inner_text("#panel .commands").split("\n") == own.command.tolist()
    shown = opened.page.inner_text("#panel")
    assert all(word in shown for word in ("two, h100", RATE, "TTFT p99", "tokens/s per GPU"))
    opened.page.click("#panel .close")
    assert not opened.page.is_visible("#panel")
    opened.check()


def test_hovering_shows_the_configuration_and_the_command(opened: Opened) -> None:
    hover(opened, 1, "one, h100", 3)
    shown = opened.page.text_content("#chart-1 .hoverlayer")
    assert all(
        word in shown for word in ("variant = one", "gpu = h100", f"{RATE} = 8", "servesim variant=one")
    )


def test_a_copy_button_copies_the_command(opened: Opened) -> None:
    opened.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    button = opened.page.locator(".copy").first
    command = button.get_attribute("data-copy")
    button.click()
    opened.page.wait_for_function("document.querySelector('.copy').textContent === 'Copied'")
    assert opened.page.evaluate("navigator.clipboard.readText()") == command
    opened.check()


def test_a_name_in_the_legend_hides_its_configuration_in_all_charts(opened: Opened) -> None:
    hidden = """() => Array.from(document.querySelectorAll(".chart"), (gd) => gd.data)
      .flat().filter((trace) => trace.legendgroup)
      .map((trace) => [trace.legendgroup, trace.visible ?? true])"""
    opened.page.click("#legend button >> nth=1")
    assert all(shown == (group != "c1") for group, shown in opened.page.evaluate(hidden))
    opened.page.click("#legend button >> nth=1")
    assert all(shown for _, shown in opened.page.evaluate(hidden))
    opened.page.dblclick("#legend button >> nth=2")
    assert all(shown == (group == "c2") for group, shown in opened.page.evaluate(hidden))
    opened.page.dblclick("#legend button >> nth=2")
    assert all(shown for _, shown in opened.page.evaluate(hidden))
    opened.check()


def test_what_failed_is_told_with_its_message(opened: Opened) -> None:
    assert opened.page.inner_text(".message >> nth=0") == ERROR
    assert len(opened.named("failed")) > 0
    assert "45 clean, 3 failed" in opened.page.inner_text("header")


def test_no_name_message_or_command_can_break_the_page(tmp_path: Path, open_page: Open) -> None:
    table = sweep_table(variants=(NASTY, "two"), fails=fails)
    table["error"] = table.error.where(table.error.isna(), NASTY)
    sweep = Sweep(table, NASTY, NASTY, [NASTY], (NASTY, TTFT), NASTY)
    opened = open_page(written(sweep, tmp_path))
    opened.check()
    assert opened.page.title() == NASTY
    assert opened.page.inner_text("#legend button >> nth=0") == f"{NASTY}, h100"
    assert opened.page.inner_text(".message >> nth=0") == NASTY
    press(opened, 1, "two, h100", 3)
    assert opened.page.inner_text("#panel h3") == "two, h100"
    opened.check()


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_a_study_without_a_load_has_configurations_side_by_side_and_differences(
    tmp_path: Path, open_page: Open, mode: str
) -> None:
    table = sweep_table(rates=(), fails=lambda variant, gpu, *_: (variant, gpu) == ("two", "l40s"))
    opened = open_page(written(Sweep(table, "a_study", compare=COMPARE, baseline="one"), tmp_path), mode)
    opened.check()
    means = table.groupby(["variant", "gpu"])[TTFT].mean()
    first = {trace["name"]: trace["x"] for trace in charted(opened, 0)}
    assert {name: numbers(x)[0] for name, x in first.items()} == pytest.approx(
        {
            "one, h100": means["one", "h100"],
            "one, l40s": means["one", "l40s"],
            "two, h100": means["two", "h100"],
        }
    )
    (last,) = charted(opened, -1)
    wide = table.pivot_table(index=["gpu", "seed"], columns="variant", values=OUTPUT).loc["h100"]
    assert numbers(last["x"])[0] == pytest.approx((wide.two - wide.one).mean())


@pytest.mark.parametrize(
    "table",
    [
        sweep_table(fails=lambda *_: True),
        sweep_table(seeds=(0,)),
        sweep_table(variants=("",), gpus=("h100",), rates=(2.0,)),
        sweep_table(variants=[f"v{number}" for number in range(10)], seeds=(0,)),
        sweep_table().drop(columns=[column for column in sweep_table() if column.startswith("goodput")]),
    ],
    ids=["all failed", "one seed", "one point", "many configurations", "no SLO"],
)
def test_odd_sweeps_have_a_page_without_complaints(
    tmp_path: Path, open_page: Open, table: pd.DataFrame
) -> None:
    opened = open_page(written(Sweep(table, "odd", compare=COMPARE, baseline="one"), tmp_path))
    opened.check()
    said = opened.page.inner_text("header")
    assert ("One seed" in said) == (table.seed.nunique() == 1)
    assert ("have colours" in said) == (table.variant.nunique() == 10)


def test_a_limit_counts_when_all_points_share_it() -> None:
    table = sweep_table()
    assert limits_of(table) == {"ttft_s": 0.3, "tpot_s": 0.04}
    table.loc[0, "goodput.limits.ttft_s"] = 0.5
    assert limits_of(table) == {"tpot_s": 0.04}


def test_the_same_sweep_gives_the_same_bytes() -> None:
    assert sweep_page(usual()).html() == sweep_page(usual()).html()


@pytest.mark.parametrize("seeds", [1, 3])
def test_the_page_of_300_points_is_quick_and_small(seeds: int) -> None:
    rates = [1.1**n for n in range(75 // seeds)]
    table = sweep_table(rates=rates, seeds=range(seeds))
    assert len(table) == 300
    sweep, took_s = Sweep(table, "a_study", compare=COMPARE, baseline="one"), []
    for _ in range(2):
        began_s = process_time()
        assert len(sweep_page(sweep).html()) < 8e6
        took_s.append(process_time() - began_s)
    assert min(took_s) < 2


def charts_of(sweep: Sweep) -> dict[str, go.Figure]:
    """Return the charts of the page of a sweep by their titles."""
    parts = sweep_page(sweep).sections[1].parts
    return {
        chart.title: chart.figure
        for part in parts
        if isinstance(part, (Chart, Choice))
        for chart in (part.charts if isinstance(part, Choice) else [part])
    }


@pytest.mark.parametrize(("highest", "kind"), [(8.0, None), (16.0, "log")])
def test_a_load_of_more_than_a_decade_has_a_logarithmic_axis(highest: float, kind: str | None) -> None:
    charts = charts_of(Sweep(sweep_table(rates=(1.0, 4.0, highest)), "a_study"))
    for title in ("p99 TTFT", "whole cluster", "Attainment against load"):
        assert charts[title].layout.xaxis.type == kind


def test_the_attainment_over_the_load_is_that_of_the_table_with_a_line_at_the_target() -> None:
    sweep = usual()
    figure = charts_of(sweep)["Attainment against load"]
    means = sweep.table.groupby(["variant", "gpu", RATE])["goodput.attainment"].mean()
    for trace in figure.data:
        if trace.customdata is not None and trace.name != "failed":
            own = means.loc[tuple(str(trace.name).split(", "))].dropna()
            assert dict(zip(trace.x, trace.y, strict=True)) == pytest.approx((100 * own).to_dict())
    (line,) = [shape for shape in figure.layout.shapes if shape.type == "line"]
    (target,) = 100 * sweep.table["goodput.target"].dropna().unique()
    assert (line.y0, line.y1) == (target, target)
    assert figure.layout.yaxis.range[1] > target


@pytest.mark.parametrize(("variants", "seen"), [(2, True), (3, False)])
def test_bands_of_many_configurations_are_hidden_at_first(variants: int, seen: bool) -> None:
    table = sweep_table(variants=[f"v{number}" for number in range(variants)])
    figures = charts_of(Sweep(table, "a_study")).values()
    bands = [trace for figure in figures for trace in figure.data if trace.name == "interval"]
    assert bands
    assert {trace.visible for trace in bands} == {seen}


def test_a_switch_shows_and_hides_all_bands(opened: Opened) -> None:
    shown = """() => Array.from(document.querySelectorAll(".chart"), (gd) => gd.data).flat()
      .filter((trace) => trace.name === "interval").map((trace) => trace.visible ?? true)"""
    assert all(opened.page.evaluate(shown))
    opened.page.click("#bands")
    assert not any(opened.page.evaluate(shown))
    opened.page.click("#legend button >> nth=0")
    opened.page.click("#bands")
    assert set(opened.page.evaluate(shown)) == {True, False}
    opened.page.click("#legend button >> nth=0")
    assert all(opened.page.evaluate(shown))
    opened.check()


def test_the_interval_of_a_difference_is_seen_whole() -> None:
    sweep = usual()
    charts = [part for part in sweep_page(sweep).sections[1].parts if isinstance(part, Choice)]
    for chart in charts[-1].charts:
        low, high = chart.figure.layout.yaxis.range
        (band,) = [trace for trace in chart.figure.data if trace.name == "interval"][:1]
        ends = np.array(band.y, float)
        assert low < np.nanmin(ends) <= np.nanmax(ends) < high


def test_what_is_extrapolated_is_told_at_the_top_by_configuration() -> None:
    table = sweep_table()
    table["calibration.extrapolated"] = np.where(
        table.variant == "two", np.where(table.gpu == "h100", 0.34, 0.2), 0
    )
    lead = " ".join(sweep_page(Sweep(table, "a_study")).lead)
    assert "calibrated ranges, at worst: two, h100: 34%, two, l40s: 20%; less than 1% of the others." in lead
