"""What is told of the traffic of a run: how much came, how fast, and where from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from servesim.screen.figures import counted, number
from servesim.screen.options import option
from servesim.screen.patience import terms


def traffic(summary: Mapping[str, Any]) -> str:
    """Tell what was asked, whatever became of it."""
    asked, workload = summary["traffic"], summary["scenario"]["workload"]
    limit = terms(summary["scenario"])
    # a rate that follows the answers is not offered
    users = "concurrency" in workload.get("arrivals", {}) or summary.get("sessions") is not None
    rate = number(asked["offered_per_s"])
    at_rate = f" {'sent' if users else 'offered'} at {rate}/s" if asked["offered_per_s"] else ""
    tokens = (number(asked[f"{way}_tokens"]) for way in ("input", "output"))
    means = "{} tokens in and {} out on average".format(*tokens)
    lasted = f"all over in {number(summary['duration_s'])} simulated seconds"
    sent = f"{counted(asked['requests'], 'request')}{at_rate}"
    sessions = summary.get("sessions")
    source = _source(workload, bool(asked["offered_per_s"]), sessions and sessions["requests_meant"])
    return f"{sent}: {source}{limit}; {means}; {lasted}"


def _source(workload: Mapping[str, Any], spread: bool, meant: float | None) -> str:
    """Tell where the requests come from, so many from each session; None: there are none."""
    if workload["kind"] == "trace":
        if (rate := workload["rate_rps"]) is not None:
            rate *= workload["rate_scale"]
            return f"{workload['path']} as a Poisson process{_steady(rate, meant) if meant else ''}"
        if workload["at_once"] or not spread:
            return f"{workload['path']}, all at once"
        times = "" if workload["rate_scale"] == 1 else f"{workload['rate_scale']:g} times "
        return f"{workload['path']}{', sessions' if meant else ''} at {times}its recorded rate"
    if workload["kind"] == "replay":
        return f"{workload['source']}, {'all at once' if workload['at_once'] else 'at its recorded times'}"
    arrivals = dict(workload["arrivals"])
    if not arrivals.get("think_time_s"):
        arrivals.pop("think_time", None)
    if workload["kind"] != "sessions":
        return option(arrivals)
    rate = arrivals.pop("rate_rps", None)
    told = f"sessions, {option(arrivals)}"
    if rate is None:
        return told
    return f"{told}{_steady(rate, meant or 1.0)}"


def _steady(rate: float, meant: float) -> str:
    """Tell what a rate of sessions comes to, of so many requests each."""
    at_last = f"{number(rate * meant)} requests/s once steady"
    return f": {number(rate)} sessions/s x {number(meant)} requests = {at_last}"
