"""What is told of clients that wait, hang up or try again, and of requests that are turned away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from servesim.screen.figures import counted, number, percent

#: Why requests are dropped, in a word or two.
SHORT_REASONS = {
    "prompt_too_long": "prompt too long",
    "queue_full": "queue full",
    "slo": "first token predicted too late",
}


def terms(scenario: Mapping[str, Any]) -> str:
    """Tell on which terms requests are sent and taken, each with a comma before it; nothing where any are."""
    limit_s = scenario["slo"]["ttft_s"]
    return "".join(f", {term}" for term in _terms(scenario["client"], scenario["admission"], limit_s))


def _terms(client: Mapping[str, Any], rule: Any, slo_ttft_s: float | None) -> Iterator[str]:
    if client["max_concurrency"] is not None:
        yield f"{client['max_concurrency']:,} unanswered at the most"
    if client["timeout_s"] is not None:
        yield f"given up after {number(client['timeout_s'])} s"
    if client["ttft_timeout_s"] is not None:
        yield f"given up without a token after {number(client['ttft_timeout_s'])} s"
    if client["max_retries"]:
        yield f"{client['max_retries'] + 1} attempts at the most"
    if rule is not None:
        yield f"admission by {_rule(rule, slo_ttft_s) if isinstance(rule, Mapping) else rule}"


def _rule(rule: Mapping[str, Any], slo_ttft_s: float | None) -> str:
    """Tell a rule of admission and its limit."""
    if "max_queued" in rule:
        return f"{rule['kind']} ({rule['max_queued']:,} waiting per {rule['of']})"
    limit = rule.get("ttft_s") or slo_ttft_s
    return f"{rule['kind']} ({number(limit)} s)" if limit and "ttft_s" in rule else str(rule["kind"])


def retried(accounting: Mapping[str, Any]) -> str:
    """Tell what became of the requests, of those injected being attempts to have them served."""
    requests = counted(accounting["injected"] - accounting["retries"], "request")
    again = f"{accounting['retries']:,} of the injected are retries"
    pending = f", {accounting['retries_pending']:,} more were to come at the horizon"
    kept = percent(accounting["success"], 2)
    ends = f"of {requests} {kept} completed, {accounting['given_up']:,} given up"
    return f"{again}{pending if accounting['retries_pending'] else ''}; {ends}"


def failures(summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield why requests were not served, and how the figures take it."""
    accounting, client = summary["accounting"], summary["scenario"]["client"]
    for reason, count in accounting["dropped"].items():
        yield f"{counted(count, 'request')} dropped: {_reasons(summary)[reason]}"
    if accounting["timed_out"]:
        limits = {"timeout_s": "an answer", "ttft_timeout_s": "a token"}
        given = (f"{number(client[key])} s for {what}" for key, what in limits.items() if client[key])
        yield f"{counted(accounting['timed_out'], 'request')} timed out: {' or '.join(given)}"
    if accounting["retries"]:
        whose = "latencies are of those that completed, from their own sending"
        yield f"each attempt is judged by itself: {whose}; what went before is client queue"


def _reasons(summary: Mapping[str, Any]) -> dict[str, str]:
    """Return what each reason means in this run."""
    longest = min(pool["max_model_len"] for pool in summary["memory"].values())
    rule = summary["scenario"]["admission"]
    rule = rule if isinstance(rule, Mapping) else {}
    most, where = rule.get("max_queued"), rule.get("of", "replica")
    limit = rule.get("ttft_s") or summary["goodput"]["limits"]["ttft_s"]
    full = "" if most is None else f" ({counted(most, 'request')})"
    late = "" if limit is None else f" ({number(limit)} s)"
    return {
        "prompt_too_long": f"the prompt leaves no room for output in max_model_len ({longest:,} tokens)",
        "queue_full": f"the queue of the {where} was full{full}",
        "slo": f"the first token was predicted to come later than the limit{late}",
    }
