"""Replays: the requests of measured runs, simulated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from servesim.check import ConfigError, Problem
from servesim.config.loading import load
from servesim.results.result import Result
from servesim.scenario import Scenario
from servesim.simulation import run
from servesim.validate.measured import Measured
from servesim.validate.simulated import observed
from servesim.workload.replay import Replay


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
    arrivals further ones may set every key but the concurrency.

    Raises:
        ConfigError: listing what is wrong, traffic of its own included.
    """
    found = [problem for text in overrides if (problem := _problem(text, users is not None))]
    refused = {problem.path for problem in found}
    try:
        kept = [text for text in overrides if text not in refused]
        scenario = load(*(users or ()), *kept, config_dir=config_dir)
    except ConfigError as error:
        raise ConfigError([*found, *error.problems]) from error
    if found:
        raise ConfigError(found)
    return scenario


def _problem(override: str, closed: bool) -> Problem | None:
    """Return what is wrong with an override where a measured run says the traffic."""
    key = override.partition("=")[0]
    if key == "horizon_s":
        return Problem(override, None, "a replay goes on until its last request has ended")
    if closed and key.startswith("workload.arrivals.") and key != "workload.arrivals.concurrency":
        return None
    if key.split("/")[0].split(".")[0] == "workload":
        return Problem(override, None, "the measured run has its own traffic")
    return None


def replayed(scenario: Scenario, measured: Measured) -> Scenario:
    """Return the scenario with the traffic of a measured run.

    A run whose requests were all due at once and whose client limited how many were under way is replayed as
    the closed loop that it was. So is the client's limit where the file says what each request waited for
    it: then the requests are due when they were. Any other run is replayed at its times of sending, whatever
    made it send then.
    """
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


def simulated(scenario: Scenario, measured: Sequence[Measured], jobs: int = 1) -> list[Measured]:
    """Return for each measured run the simulated one; ``jobs`` processes, -1 for one per core.

    Raises:
        ConfigError: the scenario has problems.
        StalledError: a simulated cluster cannot make progress.
    """
    import joblib  # a tenth of a second, which one replay need not wait for

    scenarios = [replayed(scenario, each) for each in measured]
    if jobs == 1 or len(scenarios) == 1:
        return [_observed(each) for each in scenarios]
    done: list[Measured] = joblib.Parallel(jobs)(joblib.delayed(_observed)(each) for each in scenarios)
    return done


def _observed(scenario: Scenario) -> Measured:
    return observed(run(scenario))
