"""A GPU as its datasheet describes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from servesim.check import MOST_BYTES, MOST_FACTOR, MOST_PER_S, MOST_S, Problem, quantity


@dataclass(frozen=True)
class Gpu:
    """One GPU with its links: peak rates, memory, power and price.

    Peaks are dense (no structured sparsity). ``memory_bytes`` is what the driver reports to the process
    (``torch.cuda.mem_get_info``), which is less than the marketing size in GiB. Link speeds are per
    direction. ``fp8_flops_per_s`` is null where the GPU has no FP8 tensor cores. ``profile_of`` names the GPU
    whose calibration profile is scaled to this one where it has none of its own; null: the nearest by
    datasheet.
    """

    name: str = quantity()
    memory_bytes: int = quantity("bytes", above=0, at_most=MOST_BYTES)
    hbm_bytes_per_s: float = quantity("bytes/s", at_least=1, at_most=MOST_PER_S)
    bf16_flops_per_s: float = quantity("FLOP/s", at_least=1, at_most=MOST_PER_S)
    fp8_flops_per_s: float | None = quantity("FLOP/s", at_least=1, at_most=MOST_PER_S)
    nvlink_bytes_per_s: float = quantity("bytes/s per direction", at_least=1, at_most=MOST_PER_S)
    nvlink_latency_s: float = quantity("s", at_least=0, at_most=MOST_S)
    pcie_bytes_per_s: float = quantity("bytes/s per direction", at_least=1, at_most=MOST_PER_S)
    nic_bytes_per_s: float = quantity("bytes/s per direction", at_least=1, at_most=MOST_PER_S)
    nic_latency_s: float = quantity("s", at_least=0, at_most=MOST_S)
    idle_w: float = quantity("W", above=0, at_most=MOST_FACTOR)
    max_w: float = quantity("W", above=0, at_most=MOST_FACTOR)
    usd_per_hour: float = quantity("$/h", above=0, at_most=MOST_FACTOR)
    profile_of: str | None = quantity(default=None)

    def problems(self) -> Iterator[Problem]:
        """Yield a problem where the idle power exceeds the maximum."""
        if self.idle_w > self.max_w:
            yield Problem("idle_w", self.idle_w, f"must be at most max_w = {self.max_w:g} (W)")

    def peak_flops(self, weights_dtype: str) -> float:
        """Return the peak rate (FLOP/s) at which layers with weights of this dtype are multiplied.

        FP8 weights are multiplied in FP8 where the GPU can, otherwise they only save memory; int4 weights
        always do: they are widened to BF16 in registers (weight-only kernels such as Marlin).
        """
        if weights_dtype == "fp8" and self.fp8_flops_per_s is not None:
            return self.fp8_flops_per_s
        return self.bf16_flops_per_s
