"""How evenly tenants are served."""

from __future__ import annotations

from collections.abc import Mapping
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from servesim.results.outcomes import Outcomes
from servesim.results.rates import ratio
from servesim.results.records import Records
from servesim.results.service import Service
from servesim.results.slo import Slo
from servesim.results.window import Window

Floats = NDArray[np.float64]

#: Tenants that are told one by one, those with the most requests.
MOST_TENANTS = 30

#: Share of a run in which all must have waited for what they then got to be compared.
LEAST_BACKLOG = 0.01


def fairness(
    records: Records,
    run: Window,
    sent: NDArray[np.bool_],
    slo: Slo,
    tenants: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any] | None:
    """Return what became of each tenant's requests, what they were served, and how even that was.

    None where there is one tenant. Requests are those ``sent`` in the window of the summary; service is that
    of the whole run.

    Jain's index of n services x, each over the tenant's weight, is (sum x)^2 / (n sum x^2): 1 where all are
    equal, 1/n where one gets everything (Jain, Chiu and Hawe, "A quantitative measure of fairness", 1984). It
    is of the service had at replicas while *every* tenant had requests waiting there, since nobody is wronged
    who gets all that he asks for, and a queue divides only what its own replica serves. Those times of all
    replicas are summed; where that is less than a hundredth of the run, there is no index. Service counts
    what was computed for requests that never completed, too.

    Args:
        records: the closed records.
        run: the whole run.
        sent: the requests that the summary speaks of.
        slo: what makes a request good.
        tenants: the tenants of the workload by name, as far as they have names.
    """
    tenant = records.request_table.column("tenant")
    if not len(tenant) or np.ptp(tenant) == 0:
        return None
    numbers, place, counts = np.unique(tenant, return_inverse=True, return_counts=True)
    rows = np.split(np.argsort(place, kind="stable"), np.cumsum(counts)[:-1])
    everybody, outcomes = Service.of(records, run), Outcomes(records, slo)
    names = [_name(int(number), tenants) for number in numbers]
    weights = np.array([float(tenants.get(name, {}).get("weight", 1.0)) for name in names])
    backlog_s, had = _while_all_wait(everybody, place, _replicas(records))
    compared = backlog_s >= LEAST_BACKLOG * run.length_s
    end_s = np.array([run.end_s])
    whole = np.array([everybody.part(own).by(end_s)[0] for own in rows])
    told = sorted(np.argsort(-counts, kind="stable")[:MOST_TENANTS].tolist())
    return {
        "jain_index": jain_index(had / weights) if compared else nan,
        "backlogged_s": backlog_s,
        "number": len(numbers),
        "tenants": {
            names[tenant]: {
                "weight": weights[tenant],
                **outcomes.of(sent & (place == tenant)),
                "service_per_s": ratio(whole[tenant], run.length_s),
                "backlogged_service_per_s": had[tenant] / backlog_s if compared else nan,
            }
            for tenant in told
        },
    }


def jain_index(services: Floats) -> float:
    """Return Jain's index of fairness; NaN where nobody got anything."""
    return ratio(float(services.sum()) ** 2, len(services) * float((services**2).sum()))


def _replicas(records: Records) -> NDArray[np.int64]:
    """Return where each request waits to be scheduled; -1: nowhere."""
    requests = records.request_table
    replica, prefill = (requests.column(name) for name in ("replica", "prefill_replica"))
    where = np.nan_to_num(np.where(prefill >= 0, prefill, replica), nan=-1)
    return where.astype(np.int64)


def _while_all_wait(
    everybody: Service, tenant: NDArray[np.int64], replica: NDArray[np.int64]
) -> tuple[float, Floats]:
    """Return for how long every tenant had requests waiting at a replica, and what each got there then.

    Both are sums over the replicas: of two at which all wait for the same second, they tell two seconds.
    """
    total_s, total = 0.0, np.zeros(tenant.max() + 1)
    for number in np.unique(replica[replica >= 0]):
        here = np.flatnonzero(replica == number)
        counts = np.bincount(tenant[here], minlength=len(total))
        if not counts.all():
            continue  # somebody never waits here
        rows = np.split(here[np.argsort(tenant[here], kind="stable")], np.cumsum(counts)[:-1])
        services = [everybody.part(own) for own in rows]
        moments_s = np.unique(np.concatenate([service.changes_s for service in services]))
        begin = np.arange(len(moments_s) - 1)
        for service in services:
            begin = begin[service.waits(moments_s[begin])]
        starts_s, ends_s = moments_s[begin], moments_s[begin + 1]
        total_s += float((ends_s - starts_s).sum())
        total += [float((service.by(ends_s) - service.by(starts_s)).sum()) for service in services]
    return total_s, total


def _name(number: int, tenants: Mapping[str, Any]) -> str:
    """Return the name of a tenant, or its number."""
    names = list(tenants)
    return names[number] if 0 <= number < len(names) else str(number)
