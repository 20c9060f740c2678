"""The errors of profiles as Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from calibration.fit.errors import Errors
from calibration.fit.profile import OPERATIONS
from calibration.independent import Finding
from calibration.report.scored import profiles
from calibration.sources.tidy import SourceError

Table = Iterator[str]


def error_table(folder: Path) -> Table:
    """Yield a row per profile, operation and format: mean over the splits, whole shapes out, datasheet."""
    yield "| profile | operation | format | rows | held out | whole shapes out | datasheet |"
    yield "|---|---|---|---|---|---|---|"
    for said in profiles(folder):
        try:
            yield from list(_error_rows(said))
        except (AttributeError, KeyError, TypeError, ValueError) as problem:
            message = f"{said['name']}: its errors are not as fit writes them ({problem!r})"
            raise SourceError(message) from problem


def _error_rows(said: dict[str, Any]) -> Table:
    for operation in OPERATIONS:
        for name, errors in said.get("errors", {}).get(operation, {}).items():
            if name == "pooled":
                continue
            held = errors.get("splits", errors["held_out"])
            cells = (
                said["name"],
                operation.replace("_", " "),
                name,
                f"{errors['rows']:,}",
                *(_figures(each) for each in (held, errors["whole_shapes"], errors["datasheet"])),
            )
            yield f"| {' | '.join(cells)} |"


def projection_table(folder: Path) -> Table:
    """Yield a row per profile and format: the summed projections of a layer, by model."""
    rows = [
        (said["name"], dtype, by_model)
        for said in profiles(folder)
        for dtype, by_model in said.get("projections", {}).items()
    ]
    models = list(rows[0][2]) if rows else []
    yield f"| profile | format | {' | '.join(models)} |"
    yield "|---|---|" + "---|" * len(models)
    for name, dtype, by_model in rows:
        yield f"| {name} | {dtype} | {' | '.join(_figures(by_model[model]) for model in models)} |"


def independent_table(findings: Iterable[Finding]) -> Table:
    """Yield a row per part of an independent table."""
    yield "| profile | table | operation | part | n | errors | datasheet |"
    yield "|---|---|---|---|---|---|---|"
    for found in findings:
        source = found.source.partition(".")[0]
        operation = found.operation.replace("_", " ")
        cells = (
            found.profile,
            source,
            operation,
            found.part,
            f"{found.errors.n:,}",
            found.errors,
            found.datasheet,
        )
        yield f"| {' | '.join(map(str, cells))} |"


def _figures(said: dict[str, Any]) -> str:
    """Return median / mean / p90 / bias of an error table's entry."""
    return str(Errors(**{name: said[name] for name in ("mdape", "mape", "p90", "bias", "n")}))
