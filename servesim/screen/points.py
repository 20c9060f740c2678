"""What is printed of closed-loop points beside simulated ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table

from servesim.screen.errors import share, signed_percent, title_of
from servesim.screen.figures import counted
from servesim.screen.hardware import gpus
from servesim.screen.validation import columns, endings, print_parts, what
from servesim.validate.closed_loop import Simulated
from servesim.validate.tolerance import Verdict

#: Errors that are printed in full.
_MOST_FAILED = 3


def print_points(
    simulated: Simulated, scenario: Mapping[str, Any], verdicts: Sequence[Verdict], files: str, out: Console
) -> None:
    """Print the errors of closed-loop points: of all, by tensor parallelism and by users."""
    points = simulated.points
    parts: list[tuple[str, RenderableType | str]] = [
        ("Simulated", what_points(simulated, scenario)),
        ("Measured", f"{points.source}: {counted(len(points.points), 'closed-loop point')}"),
        ("Errors", _scores(simulated)),
    ]
    found = [*points.notes, *failures(simulated)]
    print_parts([*parts, *endings(verdicts, found, files)], out)


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


def failures(simulated: Simulated) -> Iterator[str]:
    """Yield the errors of points that could not be simulated."""
    failed = simulated.failed
    for line, error in list(failed.items())[:_MOST_FAILED]:
        yield f"line {line} could not be simulated: {error}"
    if len(failed) > _MOST_FAILED:
        yield f"... nor could {counted(len(failed) - _MOST_FAILED, 'further point')}"
    if not failed and not simulated.clean:
        yield "not every request of the simulated points completed"


def _scores(simulated: Simulated) -> Table:
    """Return the scores of each figure: of all points, then by tensor parallelism, then by users."""
    table = columns("", "", "n", "MAPE", "MdAPE", "bias")
    for name in ("", "tp", "concurrency"):
        scores = simulated.scores(*([name] if name else []))
        if name and len({key[2] for key in scores}) < 2:
            continue
        for key, row in scores.items():
            group = (
                (f"{name}={key[2]:g}" if name != "concurrency" else f"{key[2]:,} users") if name else "all"
            )
            figure = str(key[0]), str(key[1])
            errors = (share(row.mape), share(row.mdape), signed_percent(row.bias))
            table.add_row(title_of(figure).partition(" (")[0], group, f"{row.n:,}", *errors)
    return table
