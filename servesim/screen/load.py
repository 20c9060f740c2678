"""What is told of the load of a run: how busy the GPUs were, and whether they could serve what came."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from servesim.results.overload import loses_many, rejected
from servesim.screen.figures import rounded_percent

_SHARES = {
    "busy": "busy",
    "compute": "of peak compute",
    "bandwidth": "of bandwidth",
    "kv_cache": "of KV blocks held by requests",
}


def load(summary: Mapping[str, Any]) -> str:
    """Tell how busy the GPUs were, of two pools each one's."""
    used = summary["utilisation"]
    if not used["roles"]:
        return f"{_saturation(summary)}; {_shares(used)}"
    return "\n".join(
        [_saturation(summary), *(f"{role}: {_shares(own)}" for role, own in used["roles"].items())]
    )


def _shares(used: Mapping[str, Any]) -> str:
    return ", ".join(f"{rounded_percent(used[name])} {words}" for name, words in _SHARES.items())


def _saturation(summary: Mapping[str, Any]) -> str:
    if not summary["saturated"] and (lost := _lost(summary)):
        return lost
    if summary["saturated"] is None:
        workload = summary["scenario"]["workload"]
        kind = workload.get("arrivals", {}).get("kind")
        if kind == "burst" or workload.get("at_once"):
            return f"all {'sessions' if workload['kind'] == 'sessions' else 'requests'} at once"
        return "closed loop" if kind == "closed_loop" else "too short to tell saturation"
    return "SATURATED" if summary["saturated"] else "not saturated"


def _lost(summary: Mapping[str, Any]) -> str:
    """Tell of load that was lost, where it was more than a little."""
    accounting = summary["accounting"]
    if not loses_many(accounting):
        return ""
    ends = {"timed out": accounting["timed_out"], "rejected": rejected(accounting)}
    said = " and ".join(f"{count:,} {how}" for how, count in ends.items() if count)
    return f"OVERLOADED ({said})" if summary["overloaded"] else said
