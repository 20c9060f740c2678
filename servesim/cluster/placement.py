"""A model placed on the GPUs of a pool: what of it fits there, and how long its steps take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial

from servesim.check import Problem
from servesim.cluster.deployment import Deployment, PoolMemory, Role
from servesim.cluster.pools import Pool
from servesim.cost.auto import Auto
from servesim.cost.gpu import Gpu
from servesim.cost.memory import MemorySheet, kv_bytes_per_token, memory_sheet
from servesim.cost.model import KvCacheDtype, Model
from servesim.cost.overhead import EngineOverhead
from servesim.cost.profile import Profile
from servesim.cost.roofline import Roofline
from servesim.cost.speculation import Speculation
from servesim.cost.speculative import speculative_step_time
from servesim.cost.step_time import StepTime
from servesim.engine.continuous import Continuous
from servesim.engine.static import Static

#: Step times that are kept, each with its tables: a megabyte or so.
_KEPT = 16


@dataclass(frozen=True)
class Placement:
    """A model on one pool, under a scheduler, before anybody knows whether it fits.

    Attributes:
        path: where the configuration has the pool.
        role: what the pool does.
        pool: its replicas, and the GPUs of each.
        gpu: the kind of these.

    """

    path: str
    role: Role
    pool: Pool
    gpu: Gpu
    model: Model
    scheduler: Static | Continuous
    calibration: Auto | Profile | Roofline
    engine_overhead: EngineOverhead | None
    ignore_capacity: bool

    @cached_property
    def sheet(self) -> MemorySheet:
        """The memory sheet of one of the GPUs, whether the model fits or not."""
        sequences, tokens = self.scheduler.step_limits
        return memory_sheet(
            self.model,
            self.gpu,
            self.pool.tensor_parallel_size,
            gpu_memory_utilization=self.scheduler.gpu_memory_utilization,
            kv_cache_dtype=self.scheduler.kv_cache_dtype,
            block_size=self.scheduler.block_size,
            max_num_seqs=sequences,
            max_num_batched_tokens=tokens,
            num_gpu_blocks_override=self.scheduler.num_gpu_blocks_override,
            speculation=self.scheduler.speculation,
        )

    @property
    def max_model_len(self) -> int:
        """Tokens of the longest sequence: as given, else what the model and the KV cache allow."""
        if self.scheduler.max_model_len != "auto":
            return self.scheduler.max_model_len
        longest = self.model.max_position_embeddings
        return longest if self.ignore_capacity else min(longest, self.sheet.kv_tokens)

    @property
    def smallest_fit(self) -> int | None:
        """The fewest GPUs of a node, more than the replicas have, that hold the model; None: none do."""
        most = min(self.pool.gpus_per_node, self.model.num_attention_heads)
        for size in range(self.pool.tensor_parallel_size + 1, most + 1):
            wider = replace(self, pool=replace(self.pool, tensor_parallel_size=size))
            if not any(self.model.tensor_parallel_problems(size)) and wider.sheet.fits:
                return size
        return None

    def memory(self) -> PoolMemory:
        """Return the memory of the pool, whether the model fits or not."""
        more = None if self.sheet.fits else self.smallest_fit
        gpus = self.gpu.name, self.pool.tensor_parallel_size
        return PoolMemory(self.role, *gpus, self.sheet, self.max_model_len, more)

    def deployment(self, first_replica: int) -> Deployment:
        """Return the pool as deployed, its replicas numbered from ``first_replica``; it must be possible."""
        scheduler, longest = self.scheduler, self.max_model_len
        sequences, _ = scheduler.step_limits
        needed = sequences * -(-longest // scheduler.block_size)
        return Deployment(
            role=self.role,
            gpu=self.gpu,
            replicas=self.pool.replicas,
            tensor_parallel_size=self.pool.tensor_parallel_size,
            first_replica=first_replica,
            sheet=self.sheet,
            step_time=self._step_time(),
            kv_blocks=needed if self.ignore_capacity else self.sheet.blocks,
            kv_bytes_per_token=kv_bytes_per_token(
                self.model, scheduler.speculation, scheduler.kv_cache_dtype
            ),
            max_model_len=longest,
            speculation=scheduler.speculation,
        )

    def _step_time(self) -> StepTime:
        """Return the step times of a replica."""
        scheduler = self.scheduler
        return _step_time(
            self.calibration,
            self.model,
            self.gpu,
            self.pool.tensor_parallel_size,
            scheduler.kv_cache_dtype,
            scheduler.step_limits,
            scheduler.speculation,
            self.engine_overhead,
        )

    # ---- problems ---------------------------------------------------------------------------------

    def split_problems(self) -> Iterator[Problem]:
        """Yield what keeps the model, and the draft beside it, from being split over a replica's GPUs."""
        size, speculation = self.pool.tensor_parallel_size, self.scheduler.speculation
        found = list(self.model.tensor_parallel_problems(size))
        if speculation is not None:
            found += speculation.tensor_parallel_problems(self.model, size)
        yield from (problem.under(self.path) for problem in found)

    def memory_problems(self, system_prompt_tokens: int) -> Iterator[Problem]:
        """Yield that the model does not fit, or which length has no room in what is left for KV.

        ``system_prompt_tokens`` are those that every prompt begins with.
        """
        if not self.ignore_capacity and not self.sheet.fits:
            size = self.pool.tensor_parallel_size
            message = self.sheet.does_not_fit(self.model.name, size, self.smallest_fit)
            yield Problem(self.path, None, message)
        elif (wrong := self._too_long()) is not None:
            yield wrong
        elif system_prompt_tokens >= self.max_model_len:
            message = (
                f"must be below the {self.max_model_len} of the longest sequence, max_model_len (tokens)"
            )
            yield Problem("workload.system_prompt_tokens", system_prompt_tokens, message)
        elif (wrong := self._never_scheduled()) is not None:
            yield wrong

    def target_problems(self) -> Iterator[Problem]:
        """Yield the length of steps that not even a single token of a prompt by itself keeps to.

        Every prompt would be computed token by token, each step longer than asked for, and none of them
        beside a decode.
        """
        target_s = self.scheduler.step_target_s if isinstance(self.scheduler, Continuous) else None
        if target_s is None:
            return
        least_s = self._step_time().mixed(0, 0, [(1, 0)])
        if target_s < least_s:
            message = f"no step with a prompt is that short: one of a single token takes {least_s:.3g} s"
            yield Problem("scheduler.step_target_s", target_s, message)

    def _too_long(self) -> Problem | None:
        """Return the ``max_model_len`` that was asked for, where model or KV cache allow less."""
        given, allowed = self.scheduler.max_model_len, self.model.max_position_embeddings
        if given == "auto":
            return None
        if given > allowed:
            message = f"must be at most the model's {allowed} (tokens)"
        elif not self.ignore_capacity and given > self.sheet.kv_tokens:
            message = (
                f"must be at most the {self.sheet.kv_tokens} that the KV cache of {self.path} holds (tokens)"
            )
        else:
            return None
        return Problem("scheduler.max_model_len", given, message)

    def _never_scheduled(self) -> Problem | None:
        """Return the token budget that the longest prompt does not go into, where it must go in whole."""
        if not isinstance(self.scheduler, Continuous) or self.scheduler.can_schedule(self.max_model_len):
            return None
        tokens = self.scheduler.max_num_batched_tokens
        message = (
            f"must be at least max_model_len, {self.max_model_len}, as prompts are not split (tokens per "
            f"step); or set scheduler.max_model_len={tokens}, and longer requests are dropped or cut"
        )
        return Problem("scheduler.max_num_batched_tokens", tokens, message)


@lru_cache(maxsize=_KEPT)
def _step_time(
    calibration: Auto | Profile | Roofline,
    model: Model,
    gpu: Gpu,
    tensor_parallel_size: int,
    kv_cache_dtype: KvCacheDtype,
    limits: tuple[int, int],
    speculation: Speculation | None,
    overhead: EngineOverhead | None,
) -> StepTime:
    """Return the step times of a replica; the runs of a sweep have few, and share their tables.

    ``limits``: sequences and tokens of a step.
    """
    sequences, tokens = limits
    times = partial(
        calibration.step_time,
        gpu=gpu,
        tensor_parallel_size=tensor_parallel_size,
        kv_cache_dtype=kv_cache_dtype,
        max_num_seqs=sequences,
        max_num_batched_tokens=tokens,
    )
    if speculation is None:
        return times(model, overhead=overhead)
    return speculative_step_time(times, speculation, model, overhead)
