"""What each replica had to do: whether the router spread the load."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from servesim.cluster.deployment import Deployment
from servesim.results.rates import ratio
from servesim.results.records import Records
from servesim.results.window import Window

#: Replicas up to which each is told by itself.
MOST_TOLD = 64


def replicas(
    records: Records, deployments: Sequence[Deployment], window: Window
) -> list[dict[str, Any]] | None:
    """Return the work of each of several replicas, in the order of their indices; None of very many.

    ``requests`` are all that came to it, ``busy`` is the share of the window that it spent in steps, and
    ``hit_rate`` the share of the tokens of its prompts that it had in its cache (a decode pool has none).
    """
    number = sum(pool.replicas for pool in deployments)
    if not 1 < number <= MOST_TOLD:
        return None
    busy_s = np.zeros(number)
    for replica, start_s, first_s, increment_s, steps in records.step_table.groups(
        "replica", "start_s", "first_step_s", "increment_s", "steps"
    ):
        seconds = steps * first_s + increment_s * (steps * (steps - 1) / 2)
        busy_s += np.bincount(replica, window.overlap_s(start_s, start_s + seconds), minlength=number)
    table = records.request_table
    last, first, inputs, cached, recovered = (
        np.nan_to_num(table.column(name), nan=-1).astype(np.int64)
        for name in ("replica", "prefill_replica", "input_tokens", "cached_tokens", "recovered_tokens")
    )
    prompts = np.where(first >= 0, first, last)
    came = np.concatenate([last, first[first >= 0]])
    requests = np.bincount(came[came >= 0], minlength=number)
    known = prompts >= 0
    tokens, found = (
        np.bincount(prompts[known], column[known], number) for column in (inputs, cached - recovered)
    )
    return [
        {
            "role": pool.role,
            "requests": int(requests[index]),
            "busy": ratio(float(busy_s[index]), window.length_s),
            "hit_rate": ratio(float(found[index]), float(tokens[index])),
        }
        for pool in deployments
        for index in range(pool.first_replica, pool.first_replica + pool.replicas)
    ]
