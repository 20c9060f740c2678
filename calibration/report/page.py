"""The page of one profile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from calibration.conf import gpu_named
from calibration.fit.errors import Errors
from calibration.fit.job import FEWEST_TO_SPLIT
from calibration.fit.profile import OPERATIONS
from calibration.report import figures
from calibration.report.operations import PAGE_OPERATIONS
from calibration.report.scored import Said, format_name
from servesim.cost.gpu import Gpu
from servesim.report.content import Chart, Section, Table
from servesim.report.page import Page
from servesim.report.roofline import roofline, roofs_in_words

#: Rows of a table of the worst shapes.
WORST = 12

_ERRORS = (
    "An error is predicted / measured - 1. Held out: median, mean and 90th percentile of its size, then its "
    "mean with the sign (bias), on rows that were not fitted. Ten splits: the mean over ten ways to hold a "
    "fifth of the rows out, each fitted anew. Whole shapes out: no row of the same shape (n and k, head "
    "counts, model) was fitted. Datasheet: the larger of FLOPs / peak and weight and KV bytes / bandwidth, "
    "for an all-reduce the bytes of a ring over the link."
)


#: What was done to the rows of an engine's table before a fit (calibration/sources/aiconfigurator.py).
_TABLES = {
    ("vllm", "gemm"): (
        "Products in fp8_block were launched one by one in this table: those that took less than twice the "
        "host's shortest time are of the host, not of the GPU, and are left out. Its map is blank there, and "
        "next to it the host still shows in the errors."
    ),
    ("sglang", "quantise"): (
        "These are vllm's rows on this GPU: sglang's own time a chain of four operations that it does not "
        "serve with. Its times count as extrapolated."
    ),
}


def profile_page(said: Said, tables: dict[str, pd.DataFrame]) -> Page:
    """Return the page of what a profile says, with its scored rows (see :func:`scored.scored`)."""
    gpu = gpu_named(said["gpu"])
    rows = sum(len(table) for table in tables.values())
    return Page(
        title=f"Kernel times of {said['engine']} {said['engine_version']} on {said['gpu']}",
        lead=[
            f"The profile {said['name']} stands for {rows:,} published kernel timings with forms of 4 to 12 "
            "coefficients each. How far are their times from the measured ones, where do they fail, and what "
            "would the datasheet alone have said?"
        ],
        sections=[
            _overview(said),
            *(
                _section(name, tables[name], gpu, _TABLES.get((said["engine"], name)))
                for name in OPERATIONS
                if name in tables
            ),
            _provenance(said),
        ],
        notes=[
            "Points and lines are of timings that the form was not fitted to (held out by a hash of their "
            f"shape); tables of fewer than {FEWEST_TO_SPLIT} are not split, and theirs are of fitted ones. A "
            f"drawing shows at most {figures.MOST_POINTS:,} points, chosen by a hash of the shape; lines, "
            "maps and tables leave none out."
        ],
    )


def _overview(said: Said) -> Section:
    fits = [(operation, name, errors) for operation, name, errors in _fits(said)]
    table = pd.DataFrame(
        {
            "fit": [f"{_title(operation)}, {format_name(name)}" for operation, name, _ in fits],
            "form": [errors["held_out"]["mape"] for *_, errors in fits],
            "datasheet": [errors["datasheet"]["mape"] for *_, errors in fits],
        }
    )
    headings = ("operation", "format", "rows", "held out", "ten splits", "whole shapes out", "datasheet")
    rows = [
        (
            _title(operation),
            format_name(name),
            f"{errors['rows']:,}",
            _figures(errors["held_out"]),
            _figures(errors["splits"]) if "splits" in errors else "not split",
            _figures(errors["whole_shapes"]),
            _figures(errors["datasheet"]),
        )
        for operation, name, errors in fits
    ]
    return Section(
        "Errors",
        [
            Chart(
                "The form's error beside the datasheet's",
                figures.overview(table),
                "Mean size of predicted / measured - 1 on rows that were not fitted (logarithmic scale).",
                wide=True,
            ),
            Table(
                "Errors in percent: median / mean / 90th percentile / bias",
                headings,
                rows,
                _ERRORS,
                words=2,
            ),
        ],
    )


def _section(name: str, rows: pd.DataFrame, gpu: Gpu, remark: str | None) -> Section:
    """Return the section of an operation; ``remark`` tells what is special about its rows."""
    operation = PAGE_OPERATIONS[name]
    fitted = "was not fitted to" if rows.unseen.any() else "was fitted to (they are too few to hold any out)"
    parts: list[Chart | Table] = [
        Chart(
            "Predicted against measured",
            figures.predicted_against_measured(rows),
            f"A point is a timing that the form {fitted}. On the dashed line both are equal.",
        ),
        _roof(name, rows, gpu),
        Chart(
            "Error of the form by size",
            figures.error_by_size(rows, operation.size, "predicted_s"),
            "Line: the median of the timings around each power of two; band: from their 10th to their 90th "
            "percentile.",
        ),
        Chart(
            "Error of the datasheet by size",
            figures.error_by_size(rows, operation.size, "datasheet_s"),
            "The same for the roofline of the datasheet, on the same timings.",
        ),
    ]
    if operation.regions:
        parts.append(
            Chart(
                "Where the form fails",
                figures.error_map(rows, *operation.regions),
                "Median size of the error (%) of all rows, fitted ones included, by powers of two. Blank: no "
                f"timings. Colours end at {figures.WORST_SHADE}%.",
                wide=True,
            )
        )
    parts.append(_worst(rows))
    return Section(operation.title, parts, " ".join(filter(None, (operation.lead, remark))))


def _roof(name: str, rows: pd.DataFrame, gpu: Gpu) -> Chart:
    operation = PAGE_OPERATIONS[name]
    if operation.work is None:
        return Chart(
            "Bandwidth reached",
            figures.bandwidth_reached(rows, getattr(gpu, operation.limit), operation.size),
            "Bytes that the operation cannot avoid, over the measured time; the line is the datasheet's.",
        )
    peaks = _peaks(name, rows, gpu)
    return Chart(
        "Measured timings on the roofline",
        roofline(figures.roofline_points(rows), peaks, gpu.hbm_bytes_per_s),
        "FLOPs and bytes are those that no kernel can avoid: the arithmetic, and weights or KV once. Points "
        f"above the slope found data in the L2 cache. {roofs_in_words(peaks, gpu.hbm_bytes_per_s)}",
    )


def _peaks(name: str, rows: pd.DataFrame, gpu: Gpu) -> dict[str, float]:
    """Return the peaks that the formats of an operation reach for; an FP8 cache is multiplied in BF16."""
    peaks = {"bf16": gpu.bf16_flops_per_s}
    eight_bits = rows.format.str.startswith("fp8").any() and name != "decode_attention"
    if eight_bits and gpu.fp8_flops_per_s is not None:
        peaks["fp8"] = gpu.fp8_flops_per_s
    return peaks


def _worst(rows: pd.DataFrame) -> Table:
    off = np.abs(np.log(rows.predicted_s / rows.measured_s))
    worst = rows.loc[off.sort_values(ascending=False, kind="stable").index[:WORST]]
    errors = figures.error_percent(worst, "predicted_s")
    return Table(
        "The worst shapes",
        ("format", "shape", "measured (µs)", "predicted (µs)", "error", "datasheet (µs)", "row"),
        [
            (
                row.format,
                row.shape,
                _micro(row.measured_s),
                _micro(row.predicted_s),
                f"{error:+.1f}%",
                _micro(row.datasheet_s),
                "held out" if row.unseen else "fitted",
            )
            for row, error in zip(worst.itertuples(), errors, strict=True)
        ],
        f"Of all {len(rows):,} rows those with the largest ratio between predicted and measured, either way.",
        words=2,
    )


def _provenance(said: Said) -> Section:
    origin = said["provenance"]
    facts = [
        ("package", f"{origin['package']} {origin['package_version']}"),
        ("split", origin["split"]),
        *((name, f"sha256 {digest}") for name, digest in origin["tables"].items()),
    ]
    ranges = [
        (
            _title(operation),
            format_name(name),
            ", ".join(f"{size.replace('_', ' ')} {low:,} to {high:,}" for size, (low, high) in spans.items()),
        )
        for operation, names in said["ranges"].items()
        for name, spans in names.items()
    ]
    return Section(
        "Provenance",
        [
            Table("Where the timings are from", ("", ""), facts, words=2),
            Table(
                "What the fitted rows span",
                ("operation", "format", "sizes"),
                ranges,
                "Beyond these sizes times are extrapolated, and a run's summary counts them as such.",
                words=3,
            ),
        ],
    )


def _fits(said: Said) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for operation in OPERATIONS:
        for name, errors in said["errors"].get(operation, {}).items():
            if name != "pooled":
                yield operation, name, errors


def _figures(errors: dict[str, Any]) -> str:
    return str(Errors(**{name: errors[name] for name in ("mdape", "mape", "p90", "bias", "n")}))


def _micro(seconds: float) -> str:
    return f"{seconds * 1e6:,.1f}"


def _title(operation: str) -> str:
    return PAGE_OPERATIONS[operation].title
