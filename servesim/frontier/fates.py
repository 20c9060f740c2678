"""What became of the candidates of a plan, in words."""

from __future__ import annotations

#: A sentence's end for each fate, with places for the best prices, what is allowed, and the limit at fault.
FATES = {
    "meets": "meeting the SLO at a higher price",
    "dearer": "dearer than {best} even at full load",
    "outbid": "missing the SLO until dearer than {best}, as simulated",
    "misses": "missing the SLO with all {allowed}, as simulated",
    "needs_too_many": "in need of more than {allowed} to carry the traffic at all",
    "unreachable": "out of reach of {limit} even for a request by itself",
    "kv_too_small": "with a KV cache shorter than the longest request",
    "does_not_fit": "too large for the memory",
    "indivisible": "impossible to split so (tensor parallelism)",
    "refused": "refused, as a run would be",
}


def meaning(fate: str, best: int, allowed: str, limit: str) -> str:
    """Return what a fate means for one candidate; ``best`` is how many are asked for."""
    if fate == "meets":
        return "meeting the SLO"
    first = "the first" if best == 1 else f"the first {best}"
    return FATES[fate].format(best=first, allowed=allowed, limit=limit)
