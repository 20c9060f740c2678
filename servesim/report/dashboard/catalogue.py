"""The controls of the dashboard: one for each field of its state, with what the files of ``conf/`` offer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

from servesim.config.groups import Groups
from servesim.cost.model import Model
from servesim.engine.continuous import Continuous
from servesim.engine.queue_order.keyed import ShortestFirst
from servesim.field_types import field_types
from servesim.report.dashboard.control import SLIDER, Control
from servesim.report.dashboard.state import KINDS, B

_USD = (0.2, 20.0)
_ON = {"true": "on", "false": "off"}
#: A trace needs a file, and a page that anybody may open reads none.
_NOT_OFFERED = {"workload": "trace"}


def _of(group: str) -> list[str]:
    """Return the options of a group, in order."""
    return [option for option in Groups.of(None).options(group) if option != _NOT_OFFERED.get(group)]


def _words(component: type, name: str) -> tuple[str, ...]:
    """Return the values that a field takes, which are words."""
    words: tuple[str, ...] = get_args(field_types(component)[name])
    return words


def _hardware() -> dict[str, Control]:
    return {
        "model": Control("Model", _of("model"), half=False),
        "weights": Control("Weights", _words(Model, "weights_dtype"), empty="the model's"),
        "gpu": Control("GPU", _of("gpu")),
        "tp": Control("TP (GPUs each)", ("1", "2", "4", "8")),
        "scheduler": Control("Scheduler", _of("scheduler")),
        "kv": Control("KV cache", _words(Continuous, "kv_cache_dtype")),
        "replicas": Control("Replicas"),
        "prefill": Control("Prefill replicas"),
        "decode": Control("Decode replicas"),
        "price": Control("$ per GPU-hour (empty: the GPU's own)", ends=_USD, empty="own", half=False),
    }


def _engine() -> dict[str, Control]:
    return {
        "seqs": Control("Sequences at once", empty="own"),
        "tokens": Control("Tokens per step", empty="own"),
        "batch": Control("Batch size", empty="own"),
        "batch_wait": Control("Wait for it (s)", empty="own"),
        "order": Control("Queue order", _of("scheduler/queue_order"), half=False),
        "preempt": Control("Throws others out", ("false", "true"), words=_ON),
        "by": Control("Shortest by", _words(ShortestFirst, "by"), empty="own"),
        "policy": Control("Prefill policy", _words(Continuous, "prefill_policy")),
        "prefix": Control("Prefix caching", ("true", "false"), words=_ON),
        "speculation": Control("Drafts by", _of("scheduler/speculation"), half=False),
        "draft": Control("Draft model", _of("model"), empty="own", half=False),
        "drafted": Control("Tokens drafted", empty="own"),
        "acceptance": Control("Share accepted", empty="own"),
        "preemption": Control("Preempted", _words(Continuous, "preemption_mode")),
        "swap": Control("Swap (GiB/GPU)", empty="own"),
        "blocks": Control("KV blocks", empty="all that fit"),
        "offload": Control("KV tiers", _of("scheduler/offload"), half=False),
        "host": Control("Host (GiB)", empty="own"),
        "store": Control("Store (GiB)", empty="own"),
    }


def _front() -> dict[str, Control]:
    return {
        "router": Control("Router", _of("router"), half=False),
        "ahead": Control("Tokens per request", empty="own"),
        "imbalance": Control("Most imbalance", empty="no limit"),
        "delay": Control("Sees late by (s)", empty="own"),
        "admission": Control("Admission", _of("admission"), half=False),
        "queued": Control("Most waiting", empty="own"),
        "predicted": Control("Predicted TTFT (s)", empty="the SLO's"),
    }


def _traffic() -> dict[str, Control]:
    return {
        "workload": Control("Workload", _of("workload")),
        "arrivals": Control("Arrivals", _of("workload/arrivals"), empty="own"),
        "rate": Control("Requests, or sessions, per second", ends=(0.1, 200.0), half=False),
        "concurrency": Control("Users at once", ends=(1, 1000), empty="own", half=False),
        "burstiness": Control("Burstiness (1: Poisson)", empty="own", half=False),
        "lengths": Control("Lengths", _of("workload/lengths"), empty="own", half=False),
        "input": Control("Tokens in", empty="own"),
        "output": Control("Tokens out", empty="own"),
        "requests": Control("Requests", empty="own"),
        "seed": Control("Seed"),
        "turns": Control("Turns", empty="own"),
        "think": Control("Think time (s)", empty="own"),
        "system_prompt": Control("System prompt", empty="own"),
        "calls": Control("Tool calls", empty="own"),
        "tool_delay": Control("Tool takes (s)", empty="own"),
    }


def _users() -> dict[str, Control]:
    return {
        "paid": Control("Share who pay (empty: all alike)", empty="all alike", half=False),
        "paid_priority": Control("Priority (free: 0)", empty="0"),
        "paid_weight": Control("Weight (free: 1)", empty="1"),
        "paid_slack": Control("First token wanted in (s)", empty="any time", half=False),
        "client": Control("Client", _of("client")),
        "outstanding": Control("Most unanswered", empty="no limit"),
        "timeout": Control("Time-out (s)", empty="never"),
        "ttft_timeout": Control("To token 1 (s)", empty="never"),
        "retries": Control("Retries", empty="own"),
        "backoff": Control("Backoff (s)", empty="own"),
    }


def _judgement() -> dict[str, Control]:
    return {
        "ttft": Control("TTFT, s (empty: no limit)", ends=(0.02, 20.0), empty="none", half=False),
        "tpot": Control("TPOT, s (empty: no limit)", ends=(0.002, 1.0), empty="none", half=False),
        "attainment": Control("Share of requests to meet them", ends=(0.5, 1.0), half=False),
        "sweep_price": Control("$ per GPU-hour (empty: as run)", ends=_USD, empty="as run", half=False),
    }


def _all() -> dict[str, Control]:
    known = _hardware() | _engine() | _front() | _traffic() | _users() | _judgement()
    kinds: dict[str, Any] = {name: KINDS[name] for name in known}
    return {name: replace(each, kind=kinds[name]) for name, each in known.items()}


CONTROLS: dict[str, Control] = _all()


def control_of(name: str) -> Control:
    """Return the control of a name, which both configurations have alike."""
    return CONTROLS[name.removeprefix(B)]


#: The names of all controls but the menu of sweeps, of those with a slider, with a menu, and of those that
#: show what a value is of itself.
VALUES = tuple(name for name in KINDS if name != "sweep")
SLIDERS = tuple(name for name in VALUES if control_of(name).ends)
MENUS = tuple(name for name in VALUES if control_of(name).options)
BLANKS = tuple(name for name in VALUES if control_of(name).empty and not control_of(name).options)


def slider_of(name: str) -> str:
    """Return the id of the slider of a control."""
    return f"{name}{SLIDER}"
