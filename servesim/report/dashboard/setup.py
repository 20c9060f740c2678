"""A configuration, as its controls say it: hardware, engine, and what stands before the engines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from servesim.report.dashboard.option_files import Chosen, settings
from servesim.report.dashboard.part import Part, Value, control

#: Controls that a scheduler has the keys for, and refuses all values of but the one that it starts with.
_REFUSED = {"static": ("speculation",), "disaggregated": ("policy", "offload")}


@dataclass(frozen=True)
class Setup(Part):
    """A configuration: model, GPUs, and how they serve."""

    model: str = control(str, "llama3.1-70b", "model")
    gpu: str = control(str, "h100-sxm", "gpu")
    weights: str | None = control(str, None, "model.weights_dtype")
    tp: Value = control(int, 4, "cluster.tensor_parallel_size")
    kv: str = control(str, "auto", "scheduler.kv_cache_dtype")
    scheduler: str = control(str, "continuous", "scheduler")
    replicas: Value = control(int, 2, "cluster.replicas")
    prefill: Value = control(int, 1, "cluster.prefill.replicas")
    decode: Value = control(int, 1, "cluster.decode.replicas")
    price: Value = control(float, None, "pricing.usd_per_gpu_hour")

    seqs: Value = control(int, None, "scheduler.max_num_seqs")
    tokens: Value = control(int, None, "scheduler.max_num_batched_tokens")
    batch: Value = control(int, None, "scheduler.batch_size")
    batch_wait: Value = control(float, None, "scheduler.batch_timeout_s")
    order: str = control(str, "fcfs", "scheduler/queue_order")
    preempt: str = control(str, "false", "scheduler.queue_order.preempt")
    by: str | None = control(str, None, "scheduler.queue_order.by")
    policy: str = control(str, "stall_free", "scheduler.prefill_policy")
    speculation: str = control(str, "none", "scheduler/speculation")
    draft: str | None = control(str, None, "scheduler.speculation.model")
    drafted: Value = control(int, None, "scheduler.speculation.num_speculative_tokens")
    acceptance: Value = control(float, None, "scheduler.speculation.acceptance")
    prefix: str = control(str, "true", "scheduler.enable_prefix_caching")
    preemption: str = control(str, "recompute", "scheduler.preemption_mode")
    swap: Value = control(float, None, "scheduler.swap_space")
    blocks: Value = control(int, None, "scheduler.num_gpu_blocks_override")
    offload: str = control(str, "none", "scheduler/offload")
    host: Value = control(float, None, "scheduler.offload.host.capacity")
    store: Value = control(float, None, "scheduler.offload.store.capacity")
    router: str = control(str, "least_outstanding", "router")
    ahead: Value = control(float, None, "router.tokens_per_outstanding")
    imbalance: Value = control(int, None, "router.max_imbalance")
    delay: Value = control(float, None, "router.delay_s")
    admission: str = control(str, "none", "admission")
    queued: Value = control(int, None, "admission.max_queued")
    predicted: Value = control(float, None, "admission.ttft_s")

    @property
    def chosen(self) -> Chosen:
        """The options that its controls choose; the cluster follows the scheduler."""
        inner = {"queue_order": self.order, "speculation": self.speculation, "offload": self.offload}
        refused = _REFUSED.get(self.scheduler, ())
        groups = {
            "scheduler": self.scheduler,
            **{f"scheduler/{name}": option for name, option in inner.items() if name not in refused},
            "cluster": self.scheduler,
            "router": self.router,
            "admission": self.admission,
        }
        return Chosen({group.replace("/", "."): (group, option) for group, option in groups.items()})

    @property
    def pooled(self) -> bool:
        """Whether all replicas are alike, rather than for prefill or for decode."""
        return self.scheduler != "disaggregated"

    def keys(self, name: str) -> tuple[str, ...]:
        """Return the keys that a control sets; two pools have the same parallelism."""
        if name == "tp" and not self.pooled:
            return tuple(f"cluster.{pool}.tensor_parallel_size" for pool in ("prefill", "decode"))
        return super().keys(name)

    def own(self, name: str) -> Any:
        """Return what a control without a value stands at: of a price, that of the GPU."""
        return settings("gpu", self.gpu).get("usd_per_hour") if name == "price" else super().own(name)

    def shows(self, name: str) -> bool:
        """Tell whether a control is seen: whether the options have it, and the scheduler takes it."""
        if name in _REFUSED.get(self.scheduler, ()) or (name == "swap" and self.preemption != "swap"):
            return False
        return super().shows(name)
