"""What prompts cost: tokens computed, and tokens whose KV was still in the cache."""

from __future__ import annotations

from typing import Any

import numpy as np

from servesim.results.rates import ratio
from servesim.results.records import Records


def prefill(records: Records) -> dict[str, Any]:
    """Return the tokens that prefill computed in the whole run, those found in the cache, and their share.

    Computed is what the steps did, whatever for: prompts, what was lost to a preemption (prompt and answer
    so far), the last position of a prompt where the decode pool repeats it, the padding of static batches.
    Cached is what requests did not compute because prefix caching had kept it, each time they were
    scheduled; recovered are those of them that they found again after a preemption. The hit rate counts each
    prompt once, when it is first scheduled: (cached - recovered) / tokens of the prompts scheduled. What a
    preempted request looks up again is counted apart, and what came from a tier behind the GPUs is no hit, as
    vLLM has it (vllm/v1/metrics/stats.py, ``PrefixCacheStats``: ``preempted_queries``, ``preempted_hits``).
    """
    groups = records.step_table.groups("steps", "prefill_tokens")
    requests = records.request_table
    cached, recovered = (int(requests.column(f"{how}_tokens").sum()) for how in ("cached", "recovered"))
    scheduled = ~np.isnan(requests.column("queue_s"))
    return {
        "computed_tokens": sum(int((n * tokens).sum()) for n, tokens in groups),
        "cached_tokens": cached,
        "recovered_tokens": recovered,
        "hit_rate": ratio(cached - recovered, int(requests.column("input_tokens")[scheduled].sum())),
    }
