"""Settings without effect: what was chosen, and is looked at by nothing in the runs that have it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from servesim.words import listed

#: Routers that look for what is cached of a prompt.
_BY_PREFIX = ("prefix_affinity", "kv_aware")
#: What tenants may have that one queue order alone looks at, and what it is where nobody has said.
_LOOKED_AT = {"priority": ("priority", 0), "slack_s": ("earliest_deadline", None), "weight": ("fair", 1.0)}

#: A note, and what a run has in the place that it leaves open; None: there the setting has an effect.
_Told = tuple[str, str | None]


def idle(scenarios: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a note of each setting without effect in all the runs that have it.

    What some of them heed and others do not is what they are compared for.
    """
    found: dict[str, dict[str | None, None]] = {}
    for scenario in scenarios:
        for note, where in (*_router(scenario), *_tenants(scenario), *_turns(scenario)):
            found.setdefault(note, {})[where] = None
    for note, places in found.items():
        if None not in places:
            yield note.format(listed(place for place in places if place))


def _router(scenario: Mapping[str, Any]) -> Iterator[_Told]:
    """Yield the router that looks for what is cached."""
    router, caches = scenario["router"]["kind"], scenario["scheduler"].get("enable_prefix_caching")
    if router in _BY_PREFIX:
        note = f"router {router}: no replica reuses the beginning of a prompt, so only the load counts"
        yield note, None if caches else ""


def _turns(scenario: Mapping[str, Any]) -> Iterator[_Told]:
    """Yield what is for the sessions of a trace, whose rows nevertheless follow no turns."""
    workload = scenario["workload"]
    apart = "" if workload.get("follow_turns") is False else None
    if workload.get("turn_inputs", "auto") != "auto":
        yield "workload.turn_inputs has no effect with workload.follow_turns=false", apart
    if scenario["router"]["kind"] == "session_sticky":
        note = "router session_sticky: with workload.follow_turns=false no request has a session"
        yield f"{note}, so only the load counts", apart


def _tenants(scenario: Mapping[str, Any]) -> Iterator[_Told]:
    """Yield what tenants have that a queue order looks at."""
    tenants = (scenario["workload"].get("tenants") or {}).values()
    order = scenario["scheduler"].get("queue_order")
    chosen = order["kind"] if order else "fcfs"
    given = f"queue_order={chosen}" if order else f"scheduler={scenario['scheduler']['kind']}"
    for key, (wanted, usual) in _LOOKED_AT.items():
        if any(tenant.get(key, usual) != usual for tenant in tenants):
            note = f"the tenants' {key} has no effect on the order with {{}}, only with {wanted}"
            yield note, None if chosen == wanted else given
