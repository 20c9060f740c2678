"""The candidates of a plan: every GPU with every scheduler and every degree of tensor parallelism."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from servesim.check import ConfigError, Problem
from servesim.cluster.pools import Pool, PrefillDecode
from servesim.config.kinds import KINDS
from servesim.config.loading import load
from servesim.field_types import field_types
from servesim.frontier.candidate import Candidate
from servesim.frontier.traffic import has_a_rate
from servesim.scenario import Scenario
from servesim.workload.trace import Trace

#: Keys that a plan sets itself, and what to do instead.
OWN = {
    "gpu": "the plan compares GPUs: --gpus NAME,...",
    "scheduler": "the plan compares schedulers: --schedulers NAME,...",
    "cluster": "the plan chooses the cluster",
    "steady": "a plan always judges the steady part",
    "horizon_s": "a plan needs whole runs",
    "ignore_capacity": "a plan is for what fits",
    "workload.requests": "use --requests N",
    "workload.duration_s": "use --requests N",
}
#: The same for keys of any pool.
OWN_OF_POOLS = {
    "replicas": "the plan finds the fewest; --max-replicas N limits them",
    "tensor_parallel_size": "the plan compares them: --tensor-parallel N,...",
    "gpu": "both pools have the GPU that is compared: --gpus NAME,...",
}


def catalogue(
    overrides: Sequence[str],
    gpus: Mapping[str, Sequence[str]],
    schedulers: Sequence[str],
    sizes: Sequence[int],
    config_dir: Path | None,
) -> tuple[list[Candidate], list[Problem]]:
    """Return the candidates, and what is wrong with the overrides or with the traffic for a plan.

    An override of what only some schedulers know holds for those.

    Args:
        overrides: those of a run, as typed.
        gpus: the overrides that choose each GPU, and set its price.
        schedulers: names of schedulers.
        sizes: GPUs per replica.
        config_dir: a folder with options of the user's own.

    """
    found = list(_misplaced(overrides))
    placed = [text for text in overrides if not any(_misplaced([text]))]
    candidates: list[Candidate] = []
    for gpu, choice in gpus.items():
        for scheduler in schedulers:
            own = [text for text in placed if _concerns(text, scheduler, schedulers)]
            said = (*choice, f"scheduler={scheduler}", *own)
            try:
                decided = _decided(own, scheduler)
                scenario = load("ignore_capacity=true", *said, *decided, config_dir=config_dir)
            except ConfigError as error:
                found += [*error.problems, *_also_wrong(said, error, config_dir)]
                continue
            scenario = replace(scenario, ignore_capacity=False)
            kept = tuple(text for text in said if _key(text) != "seed")  # the trial has its seeds
            typed = kept if config_dir is None else ("--config-dir", str(config_dir), *kept)
            candidates += [Candidate(gpu, scheduler, n, _sized(scenario, n), typed) for n in sizes]
    if candidates:
        found += _unplannable(candidates[0].scenario)
    return candidates, found


def _misplaced(overrides: Iterable[str]) -> Iterator[Problem]:
    """Yield a problem for each override of what the plan sets itself."""
    for text in overrides:
        key, value = _key(text), text.partition("=")[2]
        place, _, leaf = key.rpartition(".")
        message = OWN.get(key)
        if message is None and place.partition(".")[0] == "cluster":
            message = OWN_OF_POOLS.get(leaf)
        if message is not None:
            yield Problem(key, value, message)


def _also_wrong(said: Sequence[str], error: ConfigError, config_dir: Path | None) -> list[Problem]:
    """Return what else there is no plan for, once the overrides that ``error`` blames are left out."""
    wrong = {problem.path for problem in error.problems}
    rest = [text for text in said if _key(text) not in wrong]
    try:
        return list(_unplannable(load("ignore_capacity=true", *rest, config_dir=config_dir)))
    except ConfigError:
        return []


def _key(override: str) -> str:
    return override.partition("=")[0].lstrip("+")


def _concerns(override: str, scheduler: str, schedulers: Iterable[str]) -> bool:
    """Say whether an override is for this scheduler: not if only others among ``schedulers`` know its key."""
    key = _key(override).split(".")
    if len(key) < 2 or key[0] not in ("scheduler", "cluster"):
        return True
    knowing = [name for name in schedulers if key[1] in field_types(_component(key[0], name))]
    return scheduler in knowing or not knowing


def _decided(overrides: Iterable[str], scheduler: str) -> list[str]:
    """Return the keys that the plan sets in place of an engine's flags, where there are flags."""
    if not any(_key(text) == "engine_args" for text in overrides):
        return []
    places = ("cluster.prefill", "cluster.decode") if scheduler == "disaggregated" else ("cluster",)
    return [f"{place}.{key}=1" for place in places for key in ("tensor_parallel_size", "replicas")]


def _component(place: str, scheduler: str) -> type:
    if place == "scheduler":
        return KINDS["scheduler"][scheduler]
    return PrefillDecode if scheduler == "disaggregated" else Pool


def _sized(scenario: Scenario, size: int) -> Scenario:
    """Return the scenario with replicas of so many GPUs."""
    cluster = scenario.cluster
    if isinstance(cluster, Pool):
        return replace(scenario, cluster=replace(cluster, tensor_parallel_size=size))
    pools = (replace(pool, tensor_parallel_size=size) for pool in (cluster.prefill, cluster.decode))
    prefill, decode = pools
    return replace(scenario, cluster=replace(cluster, prefill=prefill, decode=decode))


def _unplannable(scenario: Scenario) -> Iterator[Problem]:
    """Yield why there is no plan for this traffic or this objective."""
    if scenario.conversations is not None:
        message = (
            "cannot be planned for: what a turn costs depends on what the cache still has of those before; "
            "sweep cluster.replicas instead"
        )
        yield Problem("workload", scenario.as_dict()["workload"]["kind"], message)
    elif isinstance(scenario.workload, Trace):
        if scenario.workload.at_once:
            yield Problem("workload.at_once", True, "has no rate to be carried; set workload.at_once=false")
        elif not scenario.workload.timed:
            message = "has no times; set workload.rate_rps, the rate to be carried"
            yield Problem("workload.path", scenario.workload.path, message)
    elif not has_a_rate(scenario.workload):
        kind = scenario.as_dict()["workload"]["arrivals"]["kind"]
        message = "has no one rate to be carried; choose workload/arrivals=poisson, gamma or constant"
        yield Problem("workload.arrivals", kind, message)
    if not scenario.slo.asks:
        yield Problem("slo", None, "has no limit to be met: set slo.ttft_s, slo.tpot_s or slo.e2e_s")
