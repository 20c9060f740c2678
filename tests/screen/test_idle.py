"""Settings without effect, told of one run or of several together."""

from __future__ import annotations

from typing import Any

from servesim.screen.idle import idle


def scenario(
    order: str | None = "fcfs", router: str = "round_robin", caches: bool = True, **tenant: Any
) -> dict[str, Any]:
    """Return what a summary says of a run whose only tenant has so much; no order is static batching."""
    scheduler = {"kind": "continuous", "queue_order": {"kind": order}, "enable_prefix_caching": caches}
    return {
        "router": {"kind": router},
        "scheduler": scheduler if order else {"kind": "static"},
        "workload": {"tenants": {"a": {"priority": 0, "slack_s": None, "weight": 1.0, **tenant}}},
    }


def test_a_setting_is_told_where_nothing_looks_at_it() -> None:
    told = list(idle([scenario(priority=1, slack_s=0.5, weight=2.0)]))
    for key, order in (("priority", "priority"), ("slack_s", "earliest_deadline"), ("weight", "fair")):
        assert (
            f"the tenants' {key} has no effect on the order with queue_order=fcfs, only with {order}" in told
        )
        assert list(idle([scenario(order, **{key: 0.5})])) == []
    assert len(told) == 3
    (note,) = idle([scenario(None, router="kv_aware")])
    assert note.startswith("router kv_aware: no replica reuses")


def test_what_is_for_turns_is_told_where_rows_follow_none() -> None:
    apart, followed = (scenario(router="session_sticky") for _ in range(2))
    for each, follow in ((apart, False), (followed, True)):
        each["workload"] |= {"follow_turns": follow, "turn_inputs": "whole"}
    turns, router = idle([apart])
    assert turns == "workload.turn_inputs has no effect with workload.follow_turns=false"
    assert router.startswith(
        "router session_sticky: with workload.follow_turns=false no request has a session"
    )
    assert list(idle([followed])) == list(idle([apart, followed])) == []


def test_of_several_runs_it_is_told_once() -> None:
    same = scenario(priority=1, router="kv_aware", caches=False)
    assert list(idle([same] * 3)) == list(idle([same]))
    (note,) = idle([scenario(None, priority=1), scenario("fair", priority=1), scenario("fair", priority=2)])
    where = "scheduler=static or queue_order=fair"
    assert note == f"the tenants' priority has no effect on the order with {where}, only with priority"


def test_runs_are_not_compared_for_nothing() -> None:
    """What one of them heeds needs no note, and what one of them does not have needs none from it."""
    assert list(idle([scenario("fcfs", priority=1), scenario("priority", priority=1)])) == []
    routers = [scenario(router=name, caches=False) for name in ("round_robin", "kv_aware")]
    assert len(list(idle(routers))) == 1
    assert list(idle([*routers, scenario(router="kv_aware")])) == []
    assert list(idle([])) == []
