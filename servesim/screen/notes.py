"""What a reader must know to read the figures of a run rightly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil, floor, log10
from typing import Any, NamedTuple

from servesim.screen.basis import basis, largest
from servesim.screen.figures import counted, number
from servesim.screen.idle import idle
from servesim.screen.patience import failures
from servesim.words import listed

#: Times the 99th percentile of E2E that requests must have come for, so that ramp and drain weigh little.
LONG_ENOUGH = 10
#: Share of a run that ramp and drain of sessions may have.
_MUCH_RAMP = 0.1
#: Times that 95% of the sessions are over in for which sessions should begin: the first of them is the ramp.
STAYS = 6
#: Share of a schedule's period from which all of it has been sent, but for the gap to the next request.
WHOLE = 0.99

#: Share of simulated time from which on extrapolation is warned of.
_MUCH = 0.05
#: Share of simulated time from which on a planner should hear of the all-reduces.
_MOST_ON_LINKS = 1 / 3
#: Share of the KV cache that is nearly all of it, and share of the requests' time that is a long wait.
_FULL, _LONG = 0.6, 0.1

#: Times the mean of its pool from which on a replica has many requests, and a mean that chance spreads less.
_UNEVEN, _ENOUGH = 1.5, 20

#: Share of the sessions from which on the unfinished ones bias what is said of the others.
_MANY_UNFINISHED = 0.05

_SATURATED = "saturated: more arrives than is served, so latencies depend on how long the run lasts"
_GIVEN_RATES = "how often drafts are right is taken as given, for all requests alike (scheduler.speculation)"
_HALVED = "no steady state found, so half of the run was cut"
_WITH_RAMP = "throughput and $ include ramp and drain"
FREE_TIERS = "$ are those of the GPUs: the host memory and the store of KV tiers add nothing to them"
_NO_CAPACITY = "ignore_capacity: KV blocks as many as could be used, whether they fit or not"


def notes(summary: Mapping[str, Any], trace: Sequence[str]) -> Iterator[str]:
    """Yield the notes of a run; those on the rows of its ``trace`` come last."""
    yield from basis(summary["scenario"])
    yield from summary["scenario"].get("notes", ())
    yield from _on_the_calibration(summary["calibration"])
    if summary["scenario"]["ignore_capacity"]:
        yield _NO_CAPACITY
    if summary.get("speculation"):
        yield _GIVEN_RATES
    if summary["offload"]:
        yield FREE_TIERS
    yield from idle([summary["scenario"]])
    yield from _on_the_spread(summary.get("replicas") or ())
    yield from _on_the_window(summary)
    yield from _on_the_sending(summary)
    yield from _on_the_requests(summary)
    yield from trace


def replay_notes(summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield the notes of a simulated run that has the traffic of a measured one.

    Ramp and drain are no matter: the measured figures include them, too.
    """
    yield from basis(summary["scenario"])
    yield from summary["scenario"].get("notes", ())
    yield from _on_the_calibration(summary["calibration"])
    if summary["scenario"]["ignore_capacity"]:
        yield _NO_CAPACITY
    if summary.get("speculation"):
        yield _GIVEN_RATES
    if summary["saturated"]:
        yield _SATURATED
    yield from _on_the_waiting(summary)
    yield from _on_the_requests(summary)


def _on_the_waiting(summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield where requests waited while the KV cache was nearly full."""
    spent = {name: seconds or 0.0 for name, seconds in summary["breakdown_s"].items()}
    waited = spent["queue"] + spent["preempted"] + spent["decode_queue"]
    share = waited / (sum(spent.values()) or 1.0)
    full = summary["utilisation"]["kv_cache"] or 0.0
    if share < _LONG or full < _FULL:
        return
    blocks = min(sheet["kv_blocks"] for sheet in summary["memory"].values())
    yield (
        f"the KV cache ({blocks:,} blocks per replica) was {full:.0%} full on average when simulated, and "
        f"requests waited {share:.0%} of their time"
    )


def extrapolates(share: Any) -> bool:
    """Tell whether much of the time lies outside the calibrated ranges."""
    return (share or 0.0) > _MUCH


def _on_the_calibration(calibration: Mapping[str, Any]) -> Iterator[str]:
    """Yield a warning where much of the time is outside the calibrated ranges, or is spent on links."""
    operations = calibration["operations"] or {}
    if extrapolates(calibration["extrapolated"]):
        outside = f"{calibration['extrapolated']:.1%} of the time is outside the calibrated ranges"
        yield ": ".join(filter(None, (outside, largest(operations, "extrapolated"))))
    linked = sum(operations.get("all_reduce", {}).values())
    if linked > _MOST_ON_LINKS:
        how = "fewer GPUs a replica or faster links may serve more"
        yield f"{linked:.1%} of the time is all-reduces: {how}"


def _on_the_spread(replicas: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield where one replica of a pool gets far more requests than the others."""
    for role in dict.fromkeys(replica["role"] for replica in replicas):
        own = [replica["requests"] for replica in replicas if replica["role"] == role]
        mean = sum(own) / len(own)
        if mean >= _ENOUGH and max(own) > _UNEVEN * mean:
            which = "replica" if role == "serve" else f"{role} replica"
            times = f"{max(own) / mean:.1f} times the mean of {len(own)}"
            yield f"the busiest {which} got {max(own):,} requests, {times}"


def _on_the_window(summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the figures speak of: all of the run, ramp and drain too, or its steady part."""
    if summary["scenario"]["steady"]:
        yield f"figures of the steady part only, from {number(summary['warmup_cut_s'])} s on"
    for caveat in caveats(summary):
        took = f"{caveat.took}; " if caveat.took else ""
        yield f"{took}{caveat.what}: {caveat.remedy}"
    if summary["saturated"]:
        yield _SATURATED


class Caveat(NamedTuple):
    """How the length of a run limits what its figures say: how long it took, what follows, what helps."""

    took: str
    what: str
    remedy: str


def caveats(summary: Mapping[str, Any]) -> Iterator[Caveat]:
    """Yield what a longer run, or the steady part of it, would tell better."""
    if summary["settled"] is False:
        yield Caveat("", _HALVED, _longer(summary) or "send more requests")
    if summary["saturated"] or summary["scenario"]["steady"]:
        return
    if _is_mostly_ramp(summary):
        began_s, lasted_s = (number(s) for s in (summary["sessions"]["begun_for_s"], summary["duration_s"]))
        took = f"short run: sessions began for {began_s} of its {lasted_s} s"
        yield Caveat(took, _WITH_RAMP, _longer(summary) or "steady=true")
    elif _is_short(summary):
        took = f"short run: {number(sending_s(summary))} s of arrivals"
        yield Caveat(took, _WITH_RAMP, "more requests, or steady=true")


def _is_short(summary: Mapping[str, Any]) -> bool:
    """Say whether ramp and drain weigh; what arrives at once may be sent for as long as the run lasts."""
    p99_s = summary["latency"]["e2e_s"]["p99"]
    took_s = sending_s(summary) or summary["duration_s"]
    return p99_s is not None and took_s < LONG_ENOUGH * p99_s


def _is_mostly_ramp(summary: Mapping[str, Any]) -> bool:
    """Say whether sessions took a good part of the run to become as many as later, or to end at last.

    The number of sessions grows for about as long as one lasts, and falls from when the last has begun.
    """
    sessions = summary.get("sessions")
    if sessions is None or sessions["begun_for_s"] is None:
        return False
    drain_s = summary["duration_s"] - sessions["begun_for_s"]
    return bool(drain_s + (sessions["duration_s"]["mean"] or 0.0) > _MUCH_RAMP * summary["duration_s"])


def _longer(summary: Mapping[str, Any]) -> str:
    """Tell how to have a steady part of some length in a run of conversations; nothing to say of others."""
    sessions = summary.get("sessions")
    if sessions is None or summary["scenario"]["workload"]["kind"] == "trace":
        return ""
    lasted_s = sessions["duration_s"]["p95"] or summary["duration_s"]
    if lasted_s is None:
        return ""  # nothing has begun
    workload = summary["scenario"]["workload"]
    limits = [f"workload.{name}" for name in ("sessions", "requests") if workload[name] is not None]
    instead = f" in place of {listed(limits, 'and')}" if limits else ""
    needed_s = max(STAYS * lasted_s, 2 * (workload["duration_s"] or 0.0))
    return f"workload.duration_s={_rounded_up(needed_s)} steady=true{instead}"


def _rounded_up(seconds: float) -> str:
    """Return a number of seconds with two digits, rounded up."""
    step = 10.0 ** max(floor(log10(seconds)) - 1, 0) if seconds > 0 else 1.0
    return f"{ceil(seconds / step) * step:.0f}"


def _on_the_sending(summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield where the traffic is not all that its configuration describes."""
    requests, workload = summary["traffic"]["requests"], summary["scenario"]["workload"]
    arrivals = workload.get("arrivals", {})
    users, period_s = arrivals.get("concurrency"), arrivals.get("period_s")
    if users is not None and requests < users:
        yield f"fewer requests ({requests:,}) than users ({users:,}): nobody sends a second one"
    if period_s is not None and _covered_s(summary) < WHOLE * period_s:
        part = f"{number(_covered_s(summary))} s of the schedule's period of {number(period_s)} s"
        yield f"only {part} sent: workload.duration_s={period_s:.0f} sends all of it"


def _covered_s(summary: Mapping[str, Any]) -> float:
    """Return how far into the schedule the sending went."""
    scenario = summary["scenario"]
    workload, horizon_s = scenario["workload"], scenario["horizon_s"]
    if workload["duration_s"] is None or workload["requests"] is not None:
        return sending_s(summary)
    return float(min(workload["duration_s"], workload["duration_s"] if horizon_s is None else horizon_s))


def sending_s(summary: Mapping[str, Any]) -> float:
    """Return the seconds from the first arrival to the last."""
    rate, requests = summary["traffic"]["offered_per_s"], summary["traffic"]["requests"]
    return (requests - 1) / rate if rate else 0.0


def _on_the_requests(summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield what became of requests that did not simply run through."""
    accounting = summary["accounting"]
    if not accounting["injected"]:
        yield "no request arrived in this run"
    if accounting["warmup"]:
        yield f"{counted(accounting['warmup'], 'warm-up request')} before, left out of all figures"
    yield from failures(summary)
    if accounting["completed"] < accounting["injected"] - sum(accounting["dropped"].values()):
        yield "latencies are of completed requests, but ITL has the gaps between tokens of the others, too"
    longest = min(pool["max_model_len"] for pool in summary["memory"].values())
    yield from _on_the_sessions(summary)
    counts = {
        "output": (accounting["length_capped"], f" cut at max_model_len ({longest:,} tokens)"),
        "preemption": (accounting["preemptions"], ""),
        "arrival": (accounting["not_sent"], " past the horizon, not sent"),
        "request": (accounting["client_queued"], " still held back in the client at the horizon"),
    }
    yield from (f"{counted(count, noun)}{what}" for noun, (count, what) in counts.items() if count)


def _on_the_sessions(summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield what ended conversations before their last turn."""
    if (sessions := summary.get("sessions")) is None:
        return
    drawn, steady = summary["scenario"]["workload"]["kind"] == "sessions", summary["scenario"]["steady"]
    if sessions["unfinished"] > _MANY_UNFINISHED * sessions["begun"]:
        told = f"{counted(sessions['unfinished'], 'session')} unfinished when the sending ended"
        lets = "workload.sessions=N lets N of them end" if drawn else "workload.requests=null lets all end"
        so = "those that ended are short ones" if steady else lets
        yield f"{told}, most of them long: {so}"
    if full := sessions["context_full"]:
        yield f"{counted(full, 'session')} ended early: the next prompt would have been too long"
    if failed := sessions["failed"]:
        told = f"{counted(failed, 'session')} ended by a request that was not completed"
        lost = counted(sessions["turns_given_up"], "further turn")
        yield f"{told}: {lost} never sent, which no share of the requests counts"
