"""Replays: the requests of measured runs, simulated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from servesim.check import ConfigError, Problem
from servesim.config.loading import load
from servesim.results.result import Result
from servesim.scenario import Scenario
from servesim.simulation import run
from servesim.sweeps.interruption import left_to_this_process
from servesim.validate.measured import Measured
from servesim.validate.server import as_measured
from servesim.validate.simulated import observed
from servesim.workload.arrivals import ClosedLoop
from servesim.workload.replay import Replay

#: The traffic of users, but for their number and the lengths of their requests, which a measurement says.
USERS = (
    *("workload/arrivals=closed_loop", "workload.arrivals.concurrency=1"),
    *("workload/lengths=fixed", "workload.lengths.input=1", "workload.lengths.output=1"),
)
#: What overrides may say of the users of a run.
_HOW_USERS = tuple(f"workload.arrivals.{key}" for key in ("ramp_up_s", "think_time_s", "think_time"))


def replay(measured: Measured, overrides: Sequence[str] = (), config_dir: Path | None = None) -> Result:
    """Simulate a measured run's requests on the configuration that overrides describe.

    Raises:
        ConfigError: listing what is wrong with the configuration.
    """
    return run(replayed(base(overrides, config_dir), measured))


def base(
    overrides: Sequence[str], config_dir: Path | None = None, users: Sequence[str] | None = None
) -> Scenario:
    """Return the scenario that measured runs are simulated on.

    Its workload is only a place holder, or made of ``users``: overrides that make a closed loop, of whose
    arrivals further ones may set every key but the concurrency. Where overrides say how users begin and
    think, the place holder is a closed loop, too, and runs of users are replayed by such users. A server of
    which nothing says how many replicas it has has one; see :func:`as_measured`.

    Raises:
        ConfigError: listing what is wrong, traffic of its own included.
    """
    how = any(_key(text) in _HOW_USERS for text in overrides)
    users = USERS if how and users is None else users
    found = [problem for text in overrides if (problem := _problem(text, users is not None))]
    refused = {problem.path for problem in found}
    try:
        kept = [text for text in overrides if text not in refused]
        scenario = load(*(users or ()), *kept, config_dir=config_dir)
    except ConfigError as error:
        raise ConfigError([*found, *error.problems]) from error
    if found:
        raise ConfigError(found)
    return as_measured(scenario, overrides)


def _problem(override: str, closed: bool) -> Problem | None:
    """Return what is wrong with an override where a measured run says the traffic."""
    key = _key(override)
    if key == "horizon_s":
        return Problem(override, None, "a replay goes on until its last request has ended")
    if closed and key.startswith("workload.arrivals.") and key != "workload.arrivals.concurrency":
        return None
    if key.split("/")[0].split(".")[0] == "workload":
        return Problem(override, None, "the measured run has its own traffic")
    return None


def _key(override: str) -> str:
    return override.partition("=")[0].lstrip("+~")


def replayed(scenario: Scenario, measured: Measured) -> Scenario:
    """Return the scenario with the traffic of a measured run.

    A run whose requests were all due at once and whose client limited how many were under way is replayed as
    the closed loop that it was. Where its times say that users did not begin at once, they begin evenly, or
    the requests are sent at their times, unless the scenario says how users begin and think. So is the
    client's limit where the file says what each request waited for it: then the requests are due when they
    were. Any other run is replayed at its times of sending, whatever made it send then.

    Raises:
        ConfigError: the scenario says how users begin or think, and the run is not one of users.
    """
    users = users_of(scenario)
    if users is None and measured.closed_loop and measured.ramp_up_s:
        users = ClosedLoop(1, ramp_up_s=measured.ramp_up_s)
    if users is not None:
        return _by_users(scenario, measured, users)
    limited = measured.closed_loop or measured.due_s is not None
    workload = Replay(
        measured.sent_s if measured.due_s is None else measured.due_s,
        measured.input_tokens,
        measured.output_tokens,
        source=measured.source,
        at_once=measured.closed_loop,
    )
    client = (
        replace(scenario.client, max_concurrency=measured.max_concurrency) if limited else scenario.client
    )
    return replace(scenario, workload=workload, client=client)


def users_of(scenario: Scenario) -> ClosedLoop | None:
    """Return how users begin and think, where overrides say it; None where they do not."""
    arrivals = getattr(scenario.workload, "arrivals", None)
    return arrivals if isinstance(arrivals, ClosedLoop) else None


def _by_users(scenario: Scenario, measured: Measured, users: ClosedLoop) -> Scenario:
    if not measured.of_users or measured.max_concurrency is None:
        message = f"is how users begin or think, and {measured.source} is not said to be of users"
        raise ConfigError([Problem("workload.arrivals", None, f"{message} (--max-concurrency N says it)")])
    workload = Replay(
        measured.sent_s,
        measured.input_tokens,
        measured.output_tokens,
        source=measured.source,
        users=replace(users, concurrency=measured.max_concurrency),
    )
    return replace(scenario, workload=workload)


class Replayed(NamedTuple):
    """A measured run's requests simulated: what a client would have measured, and the run's summary."""

    run: Measured
    summary: Mapping[str, Any]


def simulated(
    scenario: Scenario,
    measured: Sequence[Measured],
    jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> list[Replayed]:
    """Return for each measured run the simulated one; ``jobs`` processes, -1 for one per core.

    Raises:
        ConfigError: the scenario has problems.
        StalledError: a simulated cluster cannot make progress.
    """
    scenarios = [replayed(scenario, each) for each in measured]
    done = []
    for each in _each(scenarios, jobs):
        done.append(each)
        if progress is not None:
            progress(len(done), len(scenarios))
    return done


def _each(scenarios: Sequence[Scenario], jobs: int) -> Iterator[Replayed]:
    if jobs == 1 or len(scenarios) == 1:
        yield from map(_replay, scenarios)
        return
    import joblib  # a tenth of a second, which one replay need not wait for

    with left_to_this_process():
        found = joblib.Parallel(jobs, return_as="generator")(
            joblib.delayed(_replay)(each) for each in scenarios
        )
    yield from found


def _replay(scenario: Scenario) -> Replayed:
    result = run(scenario)
    return Replayed(observed(result), result.summary)
