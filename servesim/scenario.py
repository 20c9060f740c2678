"""One run, described whole: the tree of components from which a simulation is built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

from servesim import __version__
from servesim.check import MOST_S, Problem, quantity
from servesim.cluster.admission import Admission, TtftSlo
from servesim.cluster.deployment import Deployment, PoolMemory, Role
from servesim.cluster.disaggregated import Disaggregated
from servesim.cluster.pools import Pool, PrefillDecode
from servesim.cluster.router import Router
from servesim.component import plain
from servesim.cost.auto import Auto
from servesim.cost.gpu import Gpu
from servesim.cost.memory import MemorySheet, kv_bytes_per_token, memory_sheet
from servesim.cost.model import Model
from servesim.cost.overhead import EngineOverhead
from servesim.cost.power import BoardPower
from servesim.cost.profile import Profile
from servesim.cost.roofline import Roofline
from servesim.cost.speculation import Speculation
from servesim.cost.speculative import speculative_step_time
from servesim.cost.step_time import StepTime
from servesim.engine.continuous import Continuous
from servesim.engine.static import Static
from servesim.results.dialects.known import DialectName
from servesim.results.pricing import Pricing
from servesim.results.slo import Slo
from servesim.workload.client import Client
from servesim.workload.recorded import RecordedSessions
from servesim.workload.replay import Replay
from servesim.workload.sessions import Sessions
from servesim.workload.synthetic import Synthetic
from servesim.workload.trace import Trace

#: Tokens of a step for which a static engine keeps activations: longer padded prefills run in slices.
STATIC_SLICE_TOKENS = 8192


@dataclass(frozen=True)
class Scenario:
    """A model on GPUs, the way to serve it, the traffic, and what it is judged by.

    ``engine_args`` are flags of an engine that some of it was read from, and ``notes`` what a reader of the
    results should know of these and of files that described the model or a GPU.
    """

    model: Model
    gpu: Gpu
    calibration: Auto | Profile | Roofline
    scheduler: Static | Continuous | Disaggregated
    cluster: Pool | PrefillDecode
    router: Router
    workload: Synthetic | Sessions | Trace | Replay
    slo: Slo
    pricing: Pricing
    engine_overhead: EngineOverhead | None = quantity(default=None)
    board_power: BoardPower = quantity(default=BoardPower())
    client: Client = quantity(default=Client())
    admission: Admission | None = quantity(default=None)
    ignore_capacity: bool = quantity(default=False)
    seed: int = quantity(at_least=0, default=0)
    steady: bool = quantity(default=False)
    metrics: DialectName = quantity(default="vllm")
    horizon_s: float | None = quantity("s", above=0, at_most=MOST_S, default=None)
    engine_args: str | None = quantity(default=None)
    notes: tuple[str, ...] = quantity(default=())

    #: the fields that `problems` looks at; it is asked whenever these are right in themselves
    concerns: ClassVar[tuple[str, ...]] = (
        "model",
        "gpu",
        "calibration",
        "engine_overhead",
        "scheduler",
        "cluster",
        "ignore_capacity",
    )
    concerns_of: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "traffic_problems": ("workload", "client"),
        "admission_problems": ("admission", "slo"),
    }

    hints: ClassVar[Mapping[str, str]] = {
        "experiment": "is a study of many runs; choose one with experiment=NAME, or see servesim.sweep",
        **dict.fromkeys(
            ("speculative_config", "speculation"),
            "choose scheduler/speculation=NAME, or give --speculative-config in engine_args",
        ),
    }

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong between components: profiles, parallelism, memory, lengths."""
        if isinstance(self.calibration, Auto) and not self.calibration.profiles:
            engine = self.engine_overhead.engine if self.engine_overhead else None
            message = (
                f"there is no profile for the engine {engine}; choose another engine_overhead or roofline"
            )
            yield Problem("calibration", "auto", message)
        yield from self._profile_problems()
        split = isinstance(self.cluster, PrefillDecode)
        if split != isinstance(self.scheduler, Disaggregated):
            wanted = "prefill and decode pools" if not split else "one pool"
            yield Problem(
                "cluster", None, f"this scheduler needs {wanted}; choose cluster=<name of the scheduler>"
            )
            return
        misfits = [] if self.speculation is None else list(self.speculation.misfits(self.model))
        yield from (problem.under("scheduler.speculation") for problem in misfits)
        for path, _, pool in self._pools():
            impossible = list(self._tensor_parallel_problems(pool.tensor_parallel_size))
            yield from (problem.under(path) for problem in impossible)
            if not (impossible or misfits):
                yield from self._memory_problems(path, pool)

    def traffic_problems(self) -> Iterator[Problem]:
        """Yield what of the client does not go with the traffic."""
        if isinstance(self.workload, Synthetic):
            yield from self.client.misfits(self.workload.concurrency)
        if self.conversations is not None:
            yield from self.client.misfits_of_sessions()

    @property
    def conversations(self) -> Sessions | RecordedSessions | None:
        """Return the sessions of the traffic; None where no request waits for the answer to another."""
        if isinstance(self.workload, Trace):
            return self.workload.recorded
        return self.workload if isinstance(self.workload, Sessions) else None

    def admission_problems(self) -> Iterator[Problem]:
        """Yield the limit that admission control goes by, where there is none."""
        if isinstance(self.admission, TtftSlo) and self.admission.ttft_s is None and self.slo.ttft_s is None:
            message = "is missing, and slo.ttft_s, which stands in for it, too (s)"
            yield Problem("admission.ttft_s", None, message)

    def _tensor_parallel_problems(self, size: int) -> Iterator[Problem]:
        """Yield what keeps the model, and the draft beside it, from being split over ``size`` GPUs."""
        yield from self.model.tensor_parallel_problems(size)
        if self.speculation is not None:
            yield from self.speculation.tensor_parallel_problems(self.model, size)

    def _profile_problems(self) -> Iterator[Problem]:
        """Yield the GPUs that name one whose profile is not there."""
        if not isinstance(self.calibration, Auto):
            return
        gpus = {
            (f"{path}.gpu" if pool.gpu else "gpu"): pool.gpu or self.gpu for path, _, pool in self._pools()
        }
        for path, gpu in gpus.items():
            if message := self.calibration.lacks(gpu):
                yield Problem(f"{path}.profile_of", gpu.profile_of, message)

    def as_dict(self) -> dict[str, Any]:
        """Return the resolved configuration as plain values, with the version of servesim.

        Of the profiles at hand, those that a pool has.
        """
        told = self
        if isinstance(self.calibration, Auto):
            used = self.calibration.used([pool.gpu or self.gpu for _, _, pool in self._pools()])
            told = replace(self, calibration=used)
        return {"version": __version__, **plain(told)}

    @property
    def shares_prefixes(self) -> bool:
        """Whether what one request leaves in a cache may be found by another: a retry is a request, too."""
        return self.workload.shares_prefixes or self.client.max_retries > 0

    def deployments(self) -> list[Deployment]:
        """Return the pools as deployed; the scenario must be free of problems."""
        found, first_replica = [], 0
        for _, role, pool in self._pools():
            found.append(self._deployment(role, pool, first_replica))
            first_replica += pool.replicas
        return found

    def memory(self) -> list[PoolMemory]:
        """Return the memory of each pool, whether the model fits or not."""
        return [self._pool_memory(role, pool) for _, role, pool in self._pools()]

    def transfer(self) -> dict[str, Any] | None:
        """Return the link between the pools as it comes out; None where there is one pool."""
        if isinstance(self.cluster, Pool):
            return None
        gpus = [pool.gpu or self.gpu for _, _, pool in self._pools()]
        return self.cluster.transfer.as_built(gpus, self.cluster.one_node(self.gpu))

    def _pools(self) -> list[tuple[str, Role, Pool]]:
        if isinstance(self.cluster, Pool):
            return [("cluster", "serve", self.cluster)]
        return [
            ("cluster.prefill", "prefill", self.cluster.prefill),
            ("cluster.decode", "decode", self.cluster.decode),
        ]

    def _deployment(self, role: Role, pool: Pool, first_replica: int) -> Deployment:
        gpu, scheduler = pool.gpu or self.gpu, self.scheduler
        sheet = self._sheet(pool)
        max_model_len = self._max_model_len(sheet)
        sequences, _ = self.step_limits
        needed = sequences * -(-max_model_len // scheduler.block_size)
        return Deployment(
            role=role,
            gpu=gpu,
            replicas=pool.replicas,
            tensor_parallel_size=pool.tensor_parallel_size,
            first_replica=first_replica,
            sheet=sheet,
            step_time=self._step_time(pool),
            kv_blocks=needed if self.ignore_capacity else sheet.blocks,
            kv_bytes_per_token=kv_bytes_per_token(self.model, self.speculation, scheduler.kv_cache_dtype),
            max_model_len=max_model_len,
            speculation=self.speculation,
        )

    def _step_time(self, pool: Pool) -> StepTime:
        """Return the step times of a replica of a pool."""
        sequences, tokens = self.step_limits
        times = partial(
            self.calibration.step_time,
            gpu=pool.gpu or self.gpu,
            tensor_parallel_size=pool.tensor_parallel_size,
            kv_cache_dtype=self.scheduler.kv_cache_dtype,
            max_num_seqs=sequences,
            max_num_batched_tokens=tokens,
        )
        if self.speculation is None:
            return times(self.model, overhead=self.engine_overhead)
        return speculative_step_time(times, self.speculation, self.model, self.engine_overhead)

    @property
    def speculation(self) -> Speculation | None:
        """What drafts tokens, where any are drafted."""
        return None if isinstance(self.scheduler, Static) else self.scheduler.speculation

    @cached_property
    def step_limits(self) -> tuple[int, int]:
        """Sequences and tokens that a step may have."""
        if isinstance(self.scheduler, Static):
            return self.scheduler.batch_size, STATIC_SLICE_TOKENS
        return self.scheduler.max_num_seqs, self.scheduler.max_num_batched_tokens

    def _sheet(self, pool: Pool) -> MemorySheet:
        sequences, tokens = self.step_limits
        return memory_sheet(
            self.model,
            pool.gpu or self.gpu,
            pool.tensor_parallel_size,
            gpu_memory_utilization=self.scheduler.gpu_memory_utilization,
            kv_cache_dtype=self.scheduler.kv_cache_dtype,
            block_size=self.scheduler.block_size,
            max_num_seqs=sequences,
            max_num_batched_tokens=tokens,
            num_gpu_blocks_override=self.scheduler.num_gpu_blocks_override,
            speculation=self.speculation,
        )

    def _pool_memory(self, role: Role, pool: Pool) -> PoolMemory:
        sheet = self._sheet(pool)
        more = None if sheet.fits else self._smallest_fit(pool)
        name, longest = (pool.gpu or self.gpu).name, self._max_model_len(sheet)
        return PoolMemory(role, name, pool.tensor_parallel_size, sheet, longest, more)

    def _smallest_fit(self, pool: Pool) -> int | None:
        """Return the fewest GPUs of a node, more than a pool's replicas have, that hold the model."""
        most = min(pool.gpus_per_node, self.model.num_attention_heads)
        for size in range(pool.tensor_parallel_size + 1, most + 1):
            possible = not any(self.model.tensor_parallel_problems(size))
            if possible and self._sheet(replace(pool, tensor_parallel_size=size)).fits:
                return size
        return None

    def _max_model_len(self, sheet: MemorySheet) -> int:
        """Return the tokens of the longest sequence: as given, else what model and KV cache allow."""
        if self.scheduler.max_model_len != "auto":
            return self.scheduler.max_model_len
        longest = self.model.max_position_embeddings
        return longest if self.ignore_capacity else min(longest, sheet.kv_tokens)

    @property
    def _system_prompt_tokens(self) -> int:
        """Tokens that every prompt begins with; 0 where there are none, or what is given is no number."""
        tokens = self.workload.system_prompt_tokens if isinstance(self.workload, Sessions) else 0
        return tokens if isinstance(tokens, int) else 0

    def _memory_problems(self, path: str, pool: Pool) -> Iterator[Problem]:
        sheet, scheduler = self._sheet(pool), self.scheduler
        given = scheduler.max_model_len
        if not self.ignore_capacity and not sheet.fits:
            gpus, fits = pool.tensor_parallel_size, self._smallest_fit(pool)
            yield Problem(path, None, sheet.does_not_fit(self.model.name, gpus, fits))
            return
        longest = self._max_model_len(sheet)
        if given != "auto" and given > self.model.max_position_embeddings:
            message = f"must be at most the model's {self.model.max_position_embeddings} (tokens)"
            yield Problem("scheduler.max_model_len", given, message)
        elif given != "auto" and not self.ignore_capacity and given > sheet.kv_tokens:
            message = f"must be at most the {sheet.kv_tokens} that the KV cache of {path} holds (tokens)"
            yield Problem("scheduler.max_model_len", given, message)
        elif (tokens := self._system_prompt_tokens) >= longest:
            message = f"must be below the {longest} of the longest sequence, max_model_len (tokens)"
            yield Problem("workload.system_prompt_tokens", tokens, message)
        elif isinstance(scheduler, Continuous) and not scheduler.can_schedule(longest):
            tokens = scheduler.max_num_batched_tokens
            message = (
                f"must be at least max_model_len, {longest}, as prompts are not split (tokens per step); "
                f"or set scheduler.max_model_len={tokens}, and longer requests are dropped or cut"
            )
            yield Problem("scheduler.max_num_batched_tokens", tokens, message)
