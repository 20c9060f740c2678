"""What prompts cost: tokens computed, and tokens whose KV was still in the cache."""

from __future__ import annotations

from typing import Any

from servesim.results.rates import ratio
from servesim.results.records import Records


def prefill(records: Records, evicted_blocks: int = 0) -> dict[str, Any]:
    """Return the tokens that prefill computed in the whole run, those found in the cache, and their share.

    Computed is what the steps did, whatever for: prompts, what was lost to a preemption (prompt and answer
    so far), the last position of a prompt where the decode pool repeats it, the padding of static batches.
    Cached is what requests did not compute because prefix caching had kept it, each time they were
    scheduled. The hit rate is cached / (cached + loaded + computed), loaded being what came from a tier
    behind the GPUs: the share of the tokens looked up that was there, as vLLM's log tells it (vLLM,
    vllm/v1/metrics/stats.py, ``PrefixCacheStats``). ``evicted_blocks`` are those that a prompt could have
    found and that were lost because others needed the room, whether or not anybody came to ask for them.
    """
    groups = records.step_table.groups("steps", "prefill_tokens")
    computed = sum(int((n * tokens).sum()) for n, tokens in groups)
    cached, loaded = (
        int(records.request_table.column(f"{how}_tokens").sum()) for how in ("cached", "loaded")
    )
    return {
        "computed_tokens": computed,
        "cached_tokens": cached,
        "evicted_blocks": evicted_blocks,
        "hit_rate": ratio(cached, cached + loaded + computed),
    }
