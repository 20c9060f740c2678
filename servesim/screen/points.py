"""What is printed of closed-loop points beside simulated ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
from rich.console import Console
from rich.table import Table

from servesim.screen.basis import basis
from servesim.screen.errors import share, signed_percent, title_of, told
from servesim.screen.figures import counted
from servesim.screen.hardware import gpus
from servesim.screen.notes import extrapolates
from servesim.screen.replays import what
from servesim.screen.validation import Content, columns, endings, narrowing, print_parts, server
from servesim.validate.closed_loop import Simulated
from servesim.validate.server import ASSUMED
from servesim.validate.tolerance import Verdict
from servesim.words import listed

#: Errors that are printed in full.
_MOST_FAILED = 3
#: Points that are printed one by one; of more, their errors by users.
_MOST_SHOWN = 12


def print_points(
    simulated: Simulated, scenario: Mapping[str, Any], verdicts: Sequence[Verdict], files: str, out: Console
) -> None:
    """Print the errors of closed-loop points: of all, by tensor parallelism, and of few points each."""
    points = simulated.points
    few = len(points.points) <= _MOST_SHOWN
    parts: list[tuple[str, Content]] = [
        *server(scenario, what_points(simulated, scenario)),
        ("Measured", f"{points.source}: {counted(len(points.points), 'closed-loop point')}"),
        *([("Points", _each(simulated))] if few else []),
        ("Errors", _scores(simulated, ("", "tp") if few else ("", "tp", "concurrency"))),
    ]
    print_parts([*parts, *endings(verdicts, list(points_notes(simulated, scenario)), files)], out)


def what_points(simulated: Simulated, scenario: Mapping[str, Any]) -> str:
    """Tell what was simulated of points whose rows say their tensor parallelism."""
    if len({point.tp for point in simulated.points.points}) == 1:
        return what(scenario)
    pool, kind = scenario["cluster"], scenario["scheduler"]["kind"]
    replicas = counted(pool["replicas"], "replica") if "replicas" in pool else "two pools"
    gpu = "+".join(gpus(scenario))
    return (
        f"{scenario['model']['name']} on {gpu}: {replicas} of as many GPUs as each row says; scheduler {kind}"
    )


def points_notes(simulated: Simulated, scenario: Mapping[str, Any]) -> Iterator[str]:
    """Yield what to know when reading the figures of points, how many of them it concerns."""
    yield from simulated.points.notes
    yield from failures(simulated)
    sizes = {point.tp for point in simulated.points.points} - {None}
    size = scenario["cluster"].get("tensor_parallel_size")
    if sizes and size is not None and size not in sizes:
        said = listed((str(each) for each in sorted(sizes, key=str)), "and")
        yield f"the table says tensor parallelism {said}; {size} was simulated, as given"
    yield from basis(scenario)
    yield from (note for note in scenario.get("notes", ()) if not note.startswith(ASSUMED))
    for concern, concerns in _CONCERNS.items():
        if count := sum(concerns(outcome.figures) for outcome in simulated.outcomes):
            yield f"{counted(count, 'point')} {concern}"


def _above_0(name: str) -> Any:
    return lambda figures: (figures.get(name) or 0) > 0


#: What to know of a simulated point, and how its figures tell it.
_CONCERNS: Mapping[str, Any] = {
    "with preemptions: the KV cache was full": _above_0("accounting.preemptions"),
    "with answers cut at max_model_len": _above_0("accounting.length_capped"),
    "with no steady state found: send more --requests-per-user": lambda each: each.get("settled") is False,
    "mostly waiting for the KV cache or for max_num_seqs": lambda each: (
        (each.get("breakdown_s.queue") or 0) > (each.get("breakdown_s.decode") or 0) > 0
    ),
    "outside the calibrated ranges for much of the time": lambda each: extrapolates(
        each.get("calibration.extrapolated")
    ),
}


def failures(simulated: Simulated) -> Iterator[str]:
    """Yield the errors of points that could not be simulated."""
    failed = simulated.failed
    for line, error in list(failed.items())[:_MOST_FAILED]:
        yield f"line {line} could not be simulated: {error}"
    if len(failed) > _MOST_FAILED:
        yield f"... nor could {counted(len(failed) - _MOST_FAILED, 'further point')}"
    if not failed and not simulated.clean:
        yield "not every request of the simulated points completed"


def _each(simulated: Simulated) -> list[Table]:
    """Return measured and simulated values, one row for each figure of a point."""
    table = simulated.table
    varied = {
        name: heading
        for name, heading in (("tp", "GPUs"), ("isl", "in"), ("osl", "out"))
        if table[name].nunique(dropna=False) > 1
    }
    rows = []
    by_users = table.sort_values(["tp", "isl", "osl", "concurrency"], kind="stable")
    ordered = by_users.sort_values("metric", key=_in_order, kind="stable")
    for row in ordered.to_dict("records"):
        figure = str(row["metric"]), str(row["statistic"])
        values = (told(figure, row["measured"]), told(figure, row["simulated"]), signed_percent(row["error"]))
        settings = ("-" if pd.isna(row[name]) else f"{row[name]:,.0f}" for name in varied)
        rows.append([title_of(figure), f"{row['concurrency']:,}", *settings, *values])
    return narrowing(("", "users", *varied.values(), "measured", "simulated", "error"), rows)


def _in_order(metrics: pd.Series) -> pd.Series:
    """Return the places of metrics in the order in which they are first told."""
    return metrics.map({name: at for at, name in enumerate(dict.fromkeys(metrics))})


def _scores(simulated: Simulated, groups: Sequence[str]) -> Table:
    """Return the scores of each figure: of all points, then by tensor parallelism, then by users."""
    table = columns("", "", "n", "MAPE", "MdAPE", "bias")
    for name in groups:
        scores = simulated.scores(*([name] if name else []))
        if name and len({key[2] for key in scores}) < 2:
            continue
        for key, row in scores.items():
            figure = str(key[0]), str(key[1])
            errors = (share(row.mape), share(row.mdape), signed_percent(row.bias))
            group = _group(name, key[2]) if name else "all"
            table.add_row(title_of(figure).partition(" (")[0], group, f"{row.n:,}", *errors)
    return table


def _group(name: str, value: Any) -> str:
    return counted(value, "user") if name == "concurrency" else f"{name}={value:g}"
