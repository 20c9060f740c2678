"""What KV tiers behind the GPUs were given, and what they gave."""

from __future__ import annotations

from typing import Any

from servesim.results.accounting import Facts
from servesim.results.rates import ratio
from servesim.results.records import Records


def offload(records: Records, facts: Facts, length_s: float, replicas: int) -> dict[str, Any] | None:
    """Return the tokens loaded in place of being computed, and of each tier its copies, in whole blocks.

    ``write_busy`` and ``load_busy`` are the shares of the run that the links were busy, the mean over
    replicas. None where there are no tiers.
    """
    if facts.tiers is None:
        return None
    tiers: dict[str, Any] = {"host": None, "store": None}
    for name, told in facts.tiers.items():
        seconds = {way: told[f"{way}_s"] for way in ("write", "load")}
        blocks = {key: value for key, value in told.items() if key.endswith("blocks")}
        tiers[name] = blocks | {
            f"{way}_busy": ratio(spent_s, length_s * replicas) for way, spent_s in seconds.items()
        }
    return {"loaded_tokens": int(records.request_table.column("loaded_tokens").sum()), **tiers}
