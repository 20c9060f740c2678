"""What the screen says of KV that left the GPUs: tiers behind them, and swapping."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from servesim.screen.figures import counted, number, rounded_percent


def kv_tiers(section: Mapping[str, Any], media: Mapping[str, Any]) -> str:
    """Tell the room of each tier, what was written to it and loaded from it, and how busy its links were."""
    lines = [f"{section['loaded_tokens']:,} tokens loaded in place of being computed"]
    for name, whose in (("host", "per replica"), ("store", "in all")):
        if tier := section[name]:
            room = f"{media[name]['capacity']:,g} GiB {whose}"
            held = rounded_percent(tier["used_blocks"] / tier["blocks"]) if tier["blocks"] else "nothing"
            writing, loading = (rounded_percent(tier[f"{way}_busy"]) for way in ("write", "load"))
            writes = f"{counted(tier['written_blocks'], 'block')} written ({writing} busy)"
            loads = f"{tier['loaded_blocks']:,} loaded ({loading} busy)"
            lines.append(f"{name}: {room}, {held} in use at the end; {writes}, {loads}")
    return "\n".join(lines)


def swapped(swap: Mapping[str, Any]) -> str:
    """Tell what preempted requests copied to the host and back, and who found no room there."""
    if not swap["out"] and not swap["refused"]:
        return "nothing was swapped"
    out, back = counted(swap["out_blocks"], "block"), f"{swap['in_blocks']:,}"
    copies = f"{counted(swap['out'], 'preemption')}: {out} to the host and {back} back"
    full = f"; {swap['refused']:,} found the host full and recomputed" if swap["refused"] else ""
    return f"{copies}, {number(swap['seconds'])} s of steps{full}"
