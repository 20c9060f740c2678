"""The class that each ``kind:`` of the configuration stands for, and keys that are not there yet."""

from __future__ import annotations

from collections.abc import Mapping

from servesim.cluster.admission import QueueLimit, TtftSlo
from servesim.cluster.disaggregated import Disaggregated
from servesim.cluster.pools import Pool, PrefillDecode
from servesim.cluster.router import (
    KvAware,
    LeastKv,
    LeastOutstanding,
    PowerOfTwo,
    PrefixAffinity,
    Random,
    RoundRobin,
    SessionSticky,
)
from servesim.config.build import Kinds
from servesim.cost.auto import Auto
from servesim.cost.profile import Profile
from servesim.cost.roofline import Roofline
from servesim.cost.speculation import DraftModel, Eagle, Eagle3, Mtp, Ngram
from servesim.engine.continuous import Continuous
from servesim.engine.queue_order.fair import Fair
from servesim.engine.queue_order.keyed import EarliestDeadline, ShortestFirst
from servesim.engine.queue_order.order import Fcfs
from servesim.engine.queue_order.priority import Priority
from servesim.engine.static import Static
from servesim.workload import turns
from servesim.workload.arrivals import Burst, ClosedLoop, Constant, Gamma, Poisson
from servesim.workload.lengths import Fixed, Geometric, Lognormal, Range, Uniform
from servesim.workload.quantiles import Quantiles
from servesim.workload.schedule import Schedule
from servesim.workload.sessions import Sessions
from servesim.workload.synthetic import Synthetic
from servesim.workload.trace import Trace
from servesim.workload.vllm_bench import VllmBench

LENGTHS: Mapping[str, type] = {
    "quantiles": Quantiles,
    "fixed": Fixed,
    "uniform": Uniform,
    "range": Range,
    "lognormal": Lognormal,
    "geometric": Geometric,
}

KINDS: Kinds = {
    "calibration": {"auto": Auto, "profile": Profile, "roofline": Roofline},
    "scheduler": {"static": Static, "continuous": Continuous, "disaggregated": Disaggregated},
    "scheduler.queue_order": {
        "fcfs": Fcfs,
        "shortest_first": ShortestFirst,
        "priority": Priority,
        "earliest_deadline": EarliestDeadline,
        "fair": Fair,
    },
    "scheduler.speculation": {
        "ngram": Ngram,
        "draft_model": DraftModel,
        "eagle": Eagle,
        "eagle3": Eagle3,
        "mtp": Mtp,
    },
    "cluster": {"pool": Pool, "prefill_decode": PrefillDecode},
    "router": {
        "round_robin": RoundRobin,
        "random": Random,
        "least_outstanding": LeastOutstanding,
        "power_of_two": PowerOfTwo,
        "least_kv": LeastKv,
        "session_sticky": SessionSticky,
        "prefix_affinity": PrefixAffinity,
        "kv_aware": KvAware,
    },
    "admission": {"queue_limit": QueueLimit, "ttft_slo": TtftSlo},
    "workload": {"synthetic": Synthetic, "sessions": Sessions, "trace": Trace},
    "workload.arrivals": {
        "poisson": Poisson,
        "gamma": Gamma,
        "constant": Constant,
        "schedule": Schedule,
        "closed_loop": ClosedLoop,
        "burst": Burst,
        "vllm_bench": VllmBench,
    },
    "workload.lengths": LENGTHS,
    "workload.tools.lengths": LENGTHS,
    "workload.turns": {"fixed": turns.Fixed, "geometric": turns.Geometric, "uniform": turns.Uniform},
}

_EXPERT_PARALLEL = "expert parallelism is"
_EXPERTS = "mixture of experts is"
_LATENT = "multi-head latent attention is"
_WINDOW = "attention over a window is"

#: Keys that users of vLLM and of model files know, and words of such keys: what they stand for, and a verb.
LATER = {
    "pipeline": "pipeline parallelism is",
    "data_parallel_size": "data parallelism inside an engine is",
    **dict.fromkeys(("enable_expert_parallel", "expert_parallel_size", "expert_parallel"), _EXPERT_PARALLEL),
    **dict.fromkeys(("expert", "experts", "moe"), _EXPERTS),
    "kv_lora_rank": _LATENT,
    "q_lora_rank": _LATENT,
    "sliding_window": _WINDOW,
}
