"""What prompts cost: tokens computed, and tokens whose KV was still in the cache."""

from __future__ import annotations

from typing import Any

from servesim.results.records import Records


def prefill(records: Records) -> dict[str, Any]:
    """Return the tokens that prefill computed in the whole run, and those that it found in the cache.

    Computed is what the steps did, whatever for: prompts, what was lost to a preemption (prompt and answer
    so far), the last position of a prompt where the decode pool repeats it, the padding of static batches.
    Cached is what requests did not compute because prefix caching had kept it, each time they were
    scheduled.
    """
    steps = records.step_table
    return {
        "computed_tokens": sum(
            int((n * tokens).sum()) for n, tokens in steps.groups("steps", "prefill_tokens")
        ),
        "cached_tokens": int(records.request_table.column("cached_tokens").sum()),
    }
