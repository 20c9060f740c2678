"""What is told of conversations, of prompts found in the cache, and of tokens drafted ahead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from servesim.screen.figures import counted, number, rounded_percent


def sessions(section: Mapping[str, Any]) -> str:
    """Tell how conversations ended, and how long they took."""
    ends = {
        "completed": "completed",
        "context_full": "ended early",
        "failed": "failed",
        "unfinished": "unfinished",
    }
    sums = " + ".join(f"{section[name]:,} {words}" for name, words in ends.items())
    each, lasted = section["requests"]["mean"], section["duration_s"]
    if each is None:
        return f"{section['begun']:,} begun = {sums}"
    took = f"{number(lasted['p50'])} s at the median, {number(lasted['p99'])} s at p99"
    return f"{section['begun']:,} begun = {sums}; {number(each)} requests each on average, {took}"


def prefix_cache(summary: Mapping[str, Any]) -> str:
    """Tell how much of the prompts was in the cache."""
    prefill = summary["prefill"]
    found = f"{rounded_percent(prefill['hit_rate'])} of the tokens of prompts were found"
    tiers = summary["offload"]
    loaded = f" {tiers['loaded_tokens']:,} loaded," if tiers else ""
    again = f" {prefill['recovered_tokens']:,} more after preemptions," if prefill["recovered_tokens"] else ""
    first = prefill["cached_tokens"] - prefill["recovered_tokens"]
    evicted = prefill["evicted_blocks"]
    where = " from the GPUs, which tiers may have kept" if tiers else " that could have been found"
    lost = f"; {counted(evicted, 'block')} evicted{where}" if evicted else ""
    sums = f"{first:,} found,{again}{loaded} {prefill['computed_tokens']:,} computed"
    return f"{found}: {sums}{lost}"


def prefill_saved(summary: Mapping[str, Any]) -> float:
    """Return the share of the tokens of prefill that were not computed: found on a GPU, or loaded."""
    prefill, tiers = summary["prefill"], summary["offload"]
    spared = prefill["cached_tokens"] + (tiers["loaded_tokens"] if tiers else 0)
    return float(spared / max(spared + prefill["computed_tokens"], 1))


def speculation(told: Mapping[str, Any]) -> str:
    """Tell how much was drafted, and what came of it."""
    kind, drafted = told["kind"].replace("_", " "), told["num_speculative_tokens"]
    got, expected = number(told["mean_accepted_length"]), number(told["expected_length"])
    accepted = (
        f"{rounded_percent(told['accepted_share'])} of {told['draft_tokens']:,} drafted tokens accepted"
    )
    emitted = f"{got} emitted per step ({expected} by its rates)"
    return f"{kind}, {counted(drafted, 'token')} a step: {emitted}; {accepted}"
