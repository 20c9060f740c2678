"""From the configuration that a run has left behind to its pools as they were deployed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from servesim.check import ConfigError, Problem, problems
from servesim.cluster.deployment import Deployment
from servesim.config.build import build
from servesim.config.groups import conf_dir
from servesim.config.kinds import KINDS
from servesim.config.loading import from_values
from servesim.config.profiles import read_profile
from servesim.cost.profile import Profile, profile_problems
from servesim.workload.trace import Trace

#: What pools do not depend on: a trace may have moved since, and a router or a rule of admission may be a
#: user's own.
_ANY_TRAFFIC = {
    "router": {"kind": "round_robin"},
    "admission": None,
    "workload": {
        "kind": "synthetic",
        "arrivals": {"kind": "constant", "rate_rps": 1.0},
        "lengths": {"kind": "fixed", "input": 1, "output": 1},
    },
}


def saved_deployments(scenario: Mapping[str, Any], config_dir: Path | None = None) -> list[Deployment]:
    """Return the pools of a run, with the step times that it had, from ``summary["scenario"]``.

    Args:
        scenario: the resolved configuration, as :meth:`servesim.scenario.Scenario.as_dict` gives it.
        config_dir: a folder with profiles of the user's own, laid out as ``conf/``.

    Raises:
        ConfigError: a profile is missing or has changed since, or the configuration is of another version
            and no longer understood.
    """
    folders = [*([config_dir] if config_dir else []), conf_dir()]
    values = {key: value for key, value in _built_again(scenario).items() if key != "version"}
    calibration = _with_coefficients(scenario["calibration"], folders)
    return from_values({**values, **_ANY_TRAFFIC, "calibration": calibration}).deployments()


def saved_trace(scenario: Mapping[str, Any]) -> Trace:
    """Return the trace that a run has replayed, from ``summary["scenario"]``.

    Raises:
        ConfigError: its file is gone, or is no such trace any more.
    """
    said = _built_again(scenario["workload"], "workload")
    trace, found = build(Trace, {key: value for key, value in said.items() if key != "kind"}, {}, {})
    if trace is not None:
        found += problems(trace)
    if trace is None or found:
        raise ConfigError(found)
    return trace


def scenario_problems(said: Any) -> Iterator[Problem]:
    """Yield what keeps a run's configuration from being of this version; of its traffic, only the kind."""
    if not isinstance(said, Mapping):
        yield Problem("scenario", said, "must be keys with values")
        return
    values = {key: value for key, value in _built_again(said).items() if key != "version"}
    try:
        from_values({**values, **_ANY_TRAFFIC, "calibration": {"kind": "roofline"}})
    except ConfigError as error:
        yield from (problem.under("scenario") for problem in error.problems)
    for place in ("router", "workload", "calibration"):
        part = said.get(place)
        if not (isinstance(part, Mapping) and isinstance(part.get("kind"), str)):
            yield Problem(f"scenario.{place}.kind", None, "is missing")
    yield from _calibration_problems(said.get("calibration"))


def _calibration_problems(said: Any) -> Iterator[Problem]:
    """Yield what a calibration lacks to find its profiles again."""
    if not isinstance(said, Mapping):
        return
    named = {"auto": said.get("profiles"), "profile": [said]}.get(str(said.get("kind")), [])
    whole = isinstance(named, list) and all(
        isinstance(each, Mapping) and {"name", "gpu", "hash"} <= each.keys() for each in named
    )
    if not whole:
        yield Problem("scenario.calibration", said, "must name its profiles, each with its gpu and hash")


def _built_again(said: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Return values as they are composed: with a ``kind`` only where there is a choice of classes."""
    return {
        key: _built_again(value, f"{path}.{key}".lstrip(".")) if isinstance(value, Mapping) else value
        for key, value in said.items()
        if key != "kind" or path in KINDS
    }


def _with_coefficients(said: Mapping[str, Any], folders: Sequence[Path]) -> dict[str, Any]:
    """Return a calibration that was only named and hashed, complete."""
    if said["kind"] == "auto":
        profiles = {each["name"]: _profile(each, folders) for each in said["profiles"]}
        return {"kind": "auto", "profiles": profiles}
    if said["kind"] == "profile":
        return {"kind": "profile", **_profile(said, folders)}
    return dict(said)


def _profile(said: Mapping[str, Any], folders: Sequence[Path]) -> dict[str, Any]:
    """Return what the file of a profile says, if it is the one that the run had."""
    paths = [folder / "calibration" / f"{said['name']}.yaml" for folder in folders]
    found = [read_profile(path) for path in paths if path.exists()]
    sound = (profile for profile in found if not any(profile_problems(profile, "")))
    same = [profile for profile in sound if Profile(**profile).hash == said["hash"]]
    if not same:
        message = "has changed since the run" if found else "is not in conf/calibration"
        raise ConfigError([Problem("calibration", said["name"], message)])
    values: dict[str, Any] = same[0]
    return values
