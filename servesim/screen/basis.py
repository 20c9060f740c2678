"""What step times rest on: whose kernels and whose engine, and how much of the time was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from servesim.words import listed

#: Share of simulated time from which on an operation is named.
WORTH_NAMING = 0.01


def basis(scenario: Mapping[str, Any]) -> Iterator[str]:
    """Yield whose kernels and whose engine the step times of a scenario are of, as plain values say it.

    Args:
        scenario: the resolved configuration, as :meth:`servesim.scenario.Scenario.as_dict` gives it.

    """
    calibration, overhead = scenario["calibration"], scenario.get("engine_overhead")
    if calibration["kind"] == "roofline":
        yield "step times are the datasheet's (roofline): real engines are slower"
    profiles = [each for each in calibration.get("profiles", [calibration]) if "hash" in each]
    if not profiles:
        return
    names = listed([_named(each) for each in profiles], "and")
    without = sorted(_gpus(scenario) - {each["gpu"] for each in profiles})
    scaled = f", scaled to {listed(without, 'and')} by the datasheet" if without else ""
    yield f"step times: kernels as fitted in {names}{scaled}"
    if overhead:
        yield from _engine(overhead, {each.get("engine") for each in profiles})


def _named(profile: Mapping[str, Any]) -> str:
    """Return the name of a profile, with the version of the engine whose kernels were timed."""
    version = profile.get("engine_version")
    return f"{profile['name']} ({profile['engine']} {version})" if version else str(profile["name"])


def _engine(overhead: Mapping[str, Any], engines: set[str | None]) -> Iterator[str]:
    """Yield what adds to the kernels' time, and the runs that it was fitted on."""
    version = f"{overhead['engine']} {overhead['engine_version']}"
    told = f"host time and prefill factor: {overhead['name']} ({version})"
    if overhead.get("model") and overhead.get("gpu"):
        told += f", fitted on {overhead['model']} on {overhead['gpu']}"
    if (ranges := overhead.get("ranges")) and "sequences" in ranges:
        told += " at {} to {} sequences".format(*ranges["sequences"])
    yield told
    others = sorted(engine for engine in engines if engine and engine != overhead["engine"])
    if others:
        mixed = f"kernels of {listed(others, 'and')} with the host time of {overhead['engine']}"
        yield f"{mixed}: engine_overhead=NAME chooses the engine of both"


def _gpus(scenario: Mapping[str, Any]) -> set[str]:
    """Return the names of the GPUs that the pools have."""
    cluster = scenario["cluster"]
    pools = [cluster[role] for role in ("prefill", "decode")] if "prefill" in cluster else [cluster]
    return {(pool["gpu"] or scenario["gpu"])["name"] for pool in pools}


def largest(operations: Mapping[str, Mapping[str, float]], kind: str) -> str:
    """Return the operations with the largest shares of a kind, such as ``extrapolated``, and their shares.

    Empty where none has a share that is worth naming.
    """
    shares = {name: each[kind] for name, each in operations.items()}
    named = [
        f"{name} {share:.1%}"
        for name, share in sorted(shares.items(), key=lambda item: -item[1])
        if share >= WORTH_NAMING
    ]
    return listed(named, "and") if named else ""
