"""The summary of a run: all that ``summary.json`` says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import isfinite, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from servesim.cluster.deployment import Deployment
from servesim.cost.power import BoardPower
from servesim.results.accounting import Facts, accounting
from servesim.results.calibrated import calibrated
from servesim.results.classes import classes
from servesim.results.dialects.known import DIALECTS, PLAIN, DialectName
from servesim.results.dialects.sample import Sample
from servesim.results.fairness import fairness
from servesim.results.gaps import further_tokens, token_gaps
from servesim.results.goodput import Judged, goodput
from servesim.results.latency import breakdown, latency
from servesim.results.overload import overloaded
from servesim.results.prefill import prefill
from servesim.results.pricing import Pricing, cost
from servesim.results.records import Records
from servesim.results.replicas import replicas
from servesim.results.saturation import saturated
from servesim.results.sessions import sessions
from servesim.results.simulator import simulator
from servesim.results.slo import Slo
from servesim.results.speculation import speculation
from servesim.results.steady_state import steady_part
from servesim.results.throughput import ended_in, throughput, volume, volume_in
from servesim.results.tiers import offload
from servesim.results.traffic import traffic
from servesim.results.usage import energy, usage, utilisation
from servesim.results.window import Window, span, was_cut


def summarise(
    records: Records,
    deployments: Sequence[Deployment],
    facts: Facts,
    *,
    slo: Slo,
    pricing: Pricing,
    weights_dtype: str,
    board_power: BoardPower,
    calibration: str,
    scenario: Mapping[str, Any],
    transfer: Mapping[str, Any] | None,
    steady: bool,
    metrics: DialectName = PLAIN,
) -> dict[str, Any]:
    """Return the summary of closed records as plain values, None where there is nothing to say.

    A plain summary speaks of all requests, from the first send to the last response, as
    ``vllm bench serve`` does. A ``steady`` one speaks of the requests sent in the steady window, which
    begins at ``warmup_cut_s``, and of what was delivered, spent and used in it, whoever it was for: the rates
    of requests, good ones too, are of those that ended in it. So do the rates of a run that its horizon cut,
    where many a token belongs to a request that never ended. ``window_s`` is the length that rates, shares
    and costs refer to, ``duration_s`` always the run's.

    Args:
        records: the closed records of the run.
        deployments: the pools.
        facts: what the driver counted.
        slo: what makes a request good.
        pricing: the price of a GPU hour.
        weights_dtype: the dtype of the model's weights, whose peak the compute share is of.
        board_power: what power the shares of peaks amount to.
        calibration: the name of the profile behind the step times.
        scenario: the resolved configuration, kept as it is.
        transfer: the links between two pools, kept as they are.
        steady: whether to leave out warm-up and drain.
        metrics: the dialect that the summary speaks beside its own, of all requests of the run.

    """
    whole = span(records, facts.horizon_s)
    settled = steady_part(records, facts.stay_s, facts.last_begun_s)
    in_window = steady or was_cut(records)
    window = settled.window if steady else whole
    sent = window.sends(records.request_table.column("sent_s"))
    kept = sent & ~np.isnan(records.request_table.column("e2e_s"))
    times = latency(records, kept, token_gaps(records, window if in_window else None))
    ended, delivered = kept, volume(records, kept)
    if in_window:
        ended = ended_in(window, records)
        delivered = volume_in(window, records, ended, further_tokens(records, window))
    judged = Judged.of(records, slo, window, ended, facts.held_due_s)
    gpus = sum(pool.gpus for pool in deployments)
    used = usage(records, deployments, weights_dtype, board_power, window)
    account, spent_s = accounting(records, facts), breakdown(records, kept)
    summary = {
        "scenario": scenario,
        "traffic": traffic(records, facts.held_due_s),
        "accounting": account,
        "prefill": prefill(records, facts.evicted_blocks),
        **({} if facts.sessions is None else {"sessions": sessions(records, facts.sessions)}),
        "duration_s": whole.length_s,
        "warmup_cut_s": window.start_s if steady else nan,
        "window_s": window.length_s,
        "settled": settled.found if steady else None,
        "saturated": _saturated(records, settled.window, facts),
        "overloaded": overloaded(account, spent_s),
        "latency": times,
        "breakdown_s": spent_s,
        "throughput": throughput(delivered, window, deployments),
        "goodput": goodput(slo, judged, window, gpus),
        **_by_whom(records, whole, sent, slo, scenario),
        "speculation": speculation(records, deployments, window),
        "utilisation": utilisation(used, window.length_s),
        "replicas": replicas(records, deployments, window),
        "memory": {pool.role: pool.memory() for pool in deployments},
        "transfer": transfer,
        "offload": offload(records, facts, whole.length_s, sum(pool.replicas for pool in deployments)),
        "swap": None if facts.swaps is None else asdict(facts.swaps),
        "cost": cost(pricing, deployments, window, delivered, judged.done if slo.asks else nan),
        "energy": energy(used, board_power, window.length_s, delivered.output_tokens),
        "calibration": calibrated(records, deployments, calibration),
        **({} if metrics == PLAIN else {"metrics": _in_dialect(metrics, records, whole, slo, deployments)}),
        "simulator": simulator(records, facts),
    }
    return {name: plain(value) for name, value in summary.items()}


def _saturated(records: Records, steady: Window, facts: Facts) -> bool | None:
    return saturated(records, steady, facts.batched, facts.stay_s) if facts.open_loop else None


def _by_whom(
    records: Records, whole: Window, sent: NDArray[np.bool_], slo: Slo, scenario: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the sections that tell tenants and classes apart, where there are several."""
    named = scenario.get("workload", {}).get("tenants") or {}
    found = {"fairness": fairness(records, whole, sent, slo, named), "classes": classes(records, slo, sent)}
    return {name: section for name, section in found.items() if section is not None}


def _in_dialect(
    name: DialectName, records: Records, whole: Window, slo: Slo, deployments: Sequence[Deployment]
) -> dict[str, Any]:
    gpus = {str(pool.role): pool.gpus for pool in deployments}
    return DIALECTS[name].section(Sample.of(records, whole.length_s, slo, gpus))


def plain(value: Any) -> Any:
    """Return a value as JSON knows it: numpy's numbers as Python's, what is not finite as None."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    return None if isinstance(value, float) and not isfinite(value) else value
