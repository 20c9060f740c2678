"""How options that were chosen are told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from servesim.screen.figures import typed


def scheduler(scenario: Mapping[str, Any]) -> str:
    """Tell which scheduler serves, with its options; those that have a line of their own are left out."""
    hidden = {"kind", "offload", "speculation", "block_size", "gpu_memory_utilization", "kv_cache_dtype"}
    hidden.add("max_model_len")
    if scenario["scheduler"].get("preemption_mode") != "swap":
        hidden |= {"preemption_mode", "swap_space", "pcie_efficiency"}
    keys = {key: value for key, value in scenario["scheduler"].items() if key not in hidden}
    order = keys.pop("queue_order", {"kind": "fcfs"})
    if keys.get("prefill_policy") == "stall_free":
        del keys["prefill_policy"]
    shown = [f"{key}={typed(value)}" for key, value in keys.items() if value is not None]
    if order["kind"] != "fcfs":
        shown.insert(0, f"queue_order={option(order)}")
    return f"{scenario['scheduler']['kind']}: {', '.join(shown)}"


def option(values: Mapping[str, Any]) -> str:
    """Tell which option of a group was chosen, and those of its keys that say anything."""
    said = {key: value for key, value in values.items() if value not in (None, 0, [])}
    kind = said.pop("kind")
    keys = ", ".join(f"{key}={typed(value)}" for key, value in said.items())
    return f"{kind} ({keys})" if keys else kind
