"""A pool as deployed: its GPUs, their memory sheet and the step time of its replicas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from servesim.cost.gpu import Gpu
from servesim.cost.memory import MemorySheet
from servesim.cost.speculation import Speculation
from servesim.cost.step_time import StepTime

Role = Literal["serve", "prefill", "decode"]


class PoolMemory(NamedTuple):
    """The memory of a pool: the sheet of one of its GPUs, and what an engine makes of it.

    ``max_model_len`` is 0 where no token fits; ``smallest_fit`` the fewest GPUs of a node, more than a
    replica has, that hold a model that does not fit.
    """

    role: Role
    gpu_name: str
    tensor_parallel_size: int
    sheet: MemorySheet
    max_model_len: int
    smallest_fit: int | None


@dataclass(frozen=True)
class Deployment:
    """All that the simulation and its summary need to know of a pool.

    Attributes:
        role: what the pool does: everything, or one of the two halves.
        replicas: number of replicas, with global indices ``first_replica`` onwards.
        kv_blocks: KV blocks of one replica; the sheet's, unless capacity is ignored.
        kv_bytes_per_token: KV of one token in the whole model, in bytes (what a transfer moves).
        max_model_len: tokens that one sequence may have, prompt and output together.
        speculation: what drafts tokens in it; None: nothing does.
    """

    role: Role
    gpu: Gpu
    replicas: int
    tensor_parallel_size: int
    first_replica: int
    sheet: MemorySheet
    step_time: StepTime
    kv_blocks: int
    kv_bytes_per_token: int
    max_model_len: int
    speculation: Speculation | None = None

    def memory(self) -> dict[str, Any]:
        """Return the memory sheet of one of its GPUs, and what an engine makes of it, as plain values."""
        return self.sheet.as_dict() | {"kv_blocks": self.kv_blocks, "max_model_len": self.max_model_len}

    @property
    def gpus(self) -> int:
        """GPUs of the whole pool, all of them paid for."""
        return self.replicas * self.tensor_parallel_size
