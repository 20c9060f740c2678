"""Closed-loop points simulated, one run each, and their errors together."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from servesim.check import ConfigError
from servesim.cost.steady import steady
from servesim.scenario import Scenario
from servesim.sweeps.point import Outcome
from servesim.sweeps.work import Progress
from servesim.sweeps.workers import run_all
from servesim.validate.compare import relative_error
from servesim.validate.measured import THROUGHPUT, Figure
from servesim.validate.points import Point, Points
from servesim.validate.replay import USERS, base
from servesim.workload.arrivals import ClosedLoop
from servesim.workload.lengths import Fixed
from servesim.workload.synthetic import Synthetic

if TYPE_CHECKING:
    import pandas as pd

#: The scenario for each tensor parallelism, or what is wrong with it.
Bases = dict[int | None, Scenario | ConfigError]
_TP_FLAG = re.compile(r"--tensor-parallel-size\b|(?<!\S)-tp\b")
#: Requests that each user sends, and the fewest of a run: so many that a steady part can be found.
REQUESTS_PER_USER, FEWEST = 5, 20
#: How users start: spread over the time of one request, or all at once. Users who start together and ask for
#: the same lengths go on in step, which the users of a real server, none of whose answers takes the same time
#: as another, do not.
STARTS = ("steady", "burst")
#: Columns of the table of errors, one row for each point and figure.
COLUMNS = (
    *("line", "isl", "osl", "concurrency", "tp", "metric", "statistic"),
    *("measured", "simulated", "error"),
)


class Scores(NamedTuple):
    """What relative errors amount to: how many, mean, median and p90 of their absolute values, their mean."""

    n: int
    mape: float
    mdape: float
    bias: float
    p90: float


@dataclass(frozen=True)
class Simulated:
    """A table of points beside what was simulated of each; ``outcomes`` are in the order of the points."""

    points: Points
    outcomes: Sequence[Outcome]
    scenario: Scenario

    @cached_property
    def table(self) -> pd.DataFrame:
        """Return one row for each point and figure: :data:`COLUMNS`; times in seconds, errors relative."""
        import pandas as pd

        rows = [
            (point.line, point.isl, point.osl, point.concurrency, point.tp, *figure, value, found)
            for point, outcome in zip(self.points.points, self.outcomes, strict=True)
            for figure, value in point.measured.items()
            if (found := _figure(outcome, figure)) is not None
        ]
        table = pd.DataFrame(rows, columns=list(COLUMNS[:-1]))
        errors = [relative_error(*pair) for pair in zip(table.measured, table.simulated, strict=True)]
        return table.assign(error=np.array(errors, dtype=float))

    def scores(self, *by: str) -> dict[tuple[object, ...], Scores]:
        """Return the scores of each metric and statistic, or of each value of further columns in it."""
        groups = self.table.groupby(["metric", "statistic", *by], sort=False, dropna=False)
        found = {key: scored(each.error.to_numpy(float)) for key, each in groups}
        return dict(sorted(found.items(), key=lambda item: item[0][2:]))  # figures keep the table's order

    @property
    def failed(self) -> dict[int, str]:
        """Return the errors of points that could not be simulated, by the line of the point."""
        pairs = zip(self.points.points, self.outcomes, strict=True)
        return {point.line: outcome.error for point, outcome in pairs if outcome.error is not None}

    @property
    def clean(self) -> bool:
        """Tell whether every point ran, and lost no request."""
        return all(outcome.status == "clean" for outcome in self.outcomes)


def simulate_points(
    points: Points,
    overrides: Sequence[str] = (),
    requests_per_user: int = REQUESTS_PER_USER,
    config_dir: Path | None = None,
    jobs: int = -1,
    progress: Progress | None = None,
    start: str = "steady",
) -> Simulated:
    """Run every point on the configuration that overrides describe, with the tensor parallelism of its row.

    Where overrides set tensor parallelism themselves, theirs counts. A point is the steady part of a closed
    loop with fixed lengths; overrides may set how its users start (``workload.arrivals.KEY=VALUE``).

    Raises:
        ConfigError: no point can be run, listing what is wrong.
    """
    scenarios = bases(points, overrides, config_dir)
    return simulate(points, scenarios, requests_per_user, jobs, progress, start)


def simulate(
    points: Points,
    scenarios: Bases,
    requests_per_user: int = REQUESTS_PER_USER,
    jobs: int = -1,
    progress: Progress | None = None,
    start: str = "steady",
) -> Simulated:
    """Run every point on the scenario of its tensor parallelism; see :func:`simulate_points`.

    Raises:
        ConfigError: there is no scenario at all.
    """
    found = [each for each in scenarios.values() if isinstance(each, Scenario)]
    if not found:
        raise next(each for each in scenarios.values() if isinstance(each, ConfigError))
    outcomes: dict[str, Outcome] = {}
    waiting = []
    for number, point in enumerate(points.points):
        scenario = scenarios[point.tp]
        if isinstance(scenario, Scenario):
            waiting.append((str(number), at_point(scenario, point, requests_per_user, start)))
        else:
            outcomes[str(number)] = Outcome.failed(str(scenario))
    for key, outcome, _ in run_all(waiting, jobs, None):
        outcomes[key] = outcome
        if progress is not None:
            progress(len(outcomes), len(points.points))
    return Simulated(points, [outcomes[str(number)] for number in range(len(points.points))], found[0])


def bases(points: Points, overrides: Sequence[str], config_dir: Path | None = None) -> Bases:
    """Return the scenario of each tensor parallelism of a table, or why there is none.

    Parameters that are to be varied over the same points are replaced in these.
    """
    own = says_tensor_parallel(overrides)
    found: dict[int | None, Scenario | ConfigError] = {}
    for tp in dict.fromkeys(point.tp for point in points.points):
        size = [] if own or tp is None else [f"cluster.tensor_parallel_size={tp}"]
        try:
            found[tp] = base([*overrides, *size], config_dir, USERS)
        except ConfigError as error:
            found[tp] = error
    return found


def at_point(
    scenario: Scenario, point: Point, requests_per_user: int = REQUESTS_PER_USER, start: str = "steady"
) -> Scenario:
    """Return the scenario with the users and lengths of a point, judged by its steady part."""
    users: Any = getattr(scenario.workload, "arrivals", None) or ClosedLoop(point.concurrency)
    if start == "steady" and not users.ramp_up_s:
        users = replace(users, ramp_up_s=cycle_s(scenario, point))
    workload = Synthetic(
        replace(users, concurrency=point.concurrency),
        Fixed(point.isl, point.osl),
        requests=max(requests_per_user * point.concurrency, FEWEST),
    )
    return replace(scenario, workload=workload, steady=True)


def cycle_s(scenario: Scenario, point: Point) -> float:
    """Return about how long a request of a point takes while all users are busy (s), in closed form."""
    pool = scenario.deployments()[-1]
    _, tokens = scenario.scheduler.step_limits
    users = max(point.concurrency // pool.replicas, 1)
    state = steady(
        pool.step_time,
        concurrency=users,
        input_tokens=point.isl,
        output_tokens=point.osl,
        max_num_batched_tokens=max(tokens, users),
        speculation=pool.speculation,
    )
    return state.tpot_s * point.osl


def says_tensor_parallel(overrides: Sequence[str]) -> bool:
    """Tell whether overrides, or vLLM's flags among them, set how many GPUs a replica has."""
    pairs = (text.partition("=")[::2] for text in overrides)
    return any(
        key.endswith("tensor_parallel_size") or (key == "engine_args" and _TP_FLAG.search(value))
        for key, value in pairs
    )


def scored(errors: np.ndarray) -> Scores:
    """Return the scores of relative errors, NaN left out."""
    known = errors[~np.isnan(errors)]
    if not len(known):
        return Scores(0, *4 * (np.nan,))
    sizes = np.abs(known)
    figures = (sizes.mean(), np.median(sizes), known.mean(), np.percentile(sizes, 90))
    return Scores(len(known), *map(float, figures))


def _figure(outcome: Outcome, figure: Figure) -> float | None:
    """Return a figure of a simulated point; None where it has none."""
    figures: Mapping[str, object] = outcome.figures
    metric, statistic = figure
    name = f"throughput.{statistic}_per_s" if metric == THROUGHPUT else f"latency.{metric}_s.{statistic}"
    value = figures.get(name)
    return value if isinstance(value, float) else None
