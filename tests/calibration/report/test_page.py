"""The page of a profile says what the profile says, and its drawings hold the rows of the tables."""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from calibration.__main__ import CALIBRATION
from calibration.fit.errors import Errors
from calibration.report import figures
from calibration.report.operations import PAGE_OPERATIONS
from calibration.report.page import profile_page
from calibration.report.scored import Said, format_name, judged, profiles, scored
from calibration.sources.tidy import SourceError
from calibration.sources.wheel import Wheel
from servesim.report.page import Page
from tests.browser import Open, numbers
from tests.calibration.packages import installed


@cache
def rows_of(name: str) -> tuple[Said, dict[str, pd.DataFrame]]:
    (said,) = (each for each in profiles(CALIBRATION) if each["name"] == name)
    return said, scored(installed(), said)


@cache
def page_of(name: str) -> Page:
    return profile_page(*rows_of(name))


def of_the_h100() -> tuple[Said, dict[str, pd.DataFrame]]:
    return rows_of("h100-sxm-vllm")


def test_errors_of_the_points_are_those_that_the_profile_tells() -> None:
    said, tables = of_the_h100()
    for operation, rows in tables.items():
        for name, told in said["errors"][operation].items():
            part = judged(rows)[judged(rows).format == format_name(name)]
            if name == "pooled" or not part.unseen.any():
                continue
            for column, errors in (("predicted_s", "held_out"), ("datasheet_s", "datasheet")):
                assert Errors.of(part[column], part.measured_s) == Errors(**told[errors]), (operation, name)


def test_the_datasheet_is_the_roofline_of_the_work_that_the_page_draws() -> None:
    said, tables = of_the_h100()
    for operation, rows in tables.items():
        limit = said["datasheet"][PAGE_OPERATIONS[operation].limit]
        peak = np.where(
            rows.format.str.startswith("fp8") & (operation != "decode_attention"),
            said["datasheet"]["fp8_flops_per_s"],
            said["datasheet"]["bf16_flops_per_s"],
        )
        np.testing.assert_allclose(np.maximum(rows.flops / peak, rows.moved_bytes / limit), rows.datasheet_s)


def test_a_page_is_the_same_whenever_it_is_made_and_of_bounded_size() -> None:
    html = page_of("h100-sxm-vllm").html()
    assert html == profile_page(*of_the_h100()).html()
    assert len(html) < 9e6


def test_few_rows_are_judged_whole_and_many_on_those_held_out() -> None:
    _, tables = of_the_h100()
    assert len(judged(tables["all_reduce"])) == len(tables["all_reduce"])
    assert judged(tables["gemm"]).unseen.all()


def test_a_map_of_errors_counts_every_row() -> None:
    _, tables = of_the_h100()
    for operation, rows in tables.items():
        regions = PAGE_OPERATIONS[operation].regions
        if regions:
            counts = [np.nansum(trace.customdata) for trace in figures.error_map(rows, *regions).data]
            assert sum(counts) == len(rows)


def test_a_point_of_a_line_is_the_median_around_it() -> None:
    rows = of_the_h100()[1]["gemm"]
    part = judged(rows)[(judged(rows).format == "bf16") & judged(rows)["size"].between(12, 22)]
    (line,) = (
        trace
        for trace in figures.error_by_size(rows, PAGE_OPERATIONS["gemm"].size, "predicted_s").data
        if trace.name == "bf16"
    )
    assert line.y[list(line.x).index(16.0)] == np.median(figures.error_percent(part, "predicted_s"))
    assert np.all(np.diff(line.x) > 0)


def test_a_wheel_of_another_version_is_refused() -> None:
    said, _ = of_the_h100()
    with pytest.raises(SourceError, match=r"fitted to aiconfigurator-core 0\.12\.0, but 9\.9 is installed"):
        scored(Wheel(Path("nowhere"), "9.9"), said)


def test_a_folder_without_profiles_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="there is no profile"):
        profiles(tmp_path)


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_a_browser_draws_the_rows(mode: str, tmp_path: Path, open_page: Open) -> None:
    path = tmp_path / "page.html"
    page_of("a100-sxm-80gb-vllm").write(path)
    opened = open_page(path, mode)
    opened.check()
    drawn = iter(opened.traces()[1:])  # after the overview
    for operation, rows in rows_of("a100-sxm-80gb-vllm")[1].items():
        chart, shown = next(drawn), figures.drawn(rows)
        assert len(shown) <= figures.MOST_POINTS
        for trace, (_, part) in zip(chart, shown.groupby("format", sort=False), strict=False):
            np.testing.assert_array_equal(numbers(trace["x"]), 1e6 * part.measured_s)
            np.testing.assert_array_equal(numbers(trace["y"]), 1e6 * part.predicted_s)
        for _ in range(4 if PAGE_OPERATIONS[operation].regions else 3):
            next(drawn)


@pytest.mark.parametrize(
    ("name", "section", "words"),
    [
        ("h100-sxm-vllm", "gemm", "are of the host, not of the GPU, and are left out"),
        ("l40s-sglang", "quantise", "These are vllm's rows on this GPU"),
    ],
)
def test_what_was_done_to_the_rows_of_a_table_is_said(name: str, section: str, words: str) -> None:
    title = PAGE_OPERATIONS[section].title
    for profile in (name, "l40s-trtllm"):
        (lead,) = (each.lead for each in page_of(profile).sections if each.title == title)
        assert (words in lead) == (profile == name)
