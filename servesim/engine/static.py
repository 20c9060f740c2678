"""Static batching: collect a batch, run it to its last token, then take the next."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import ClassVar, Literal

from servesim.check import MOST_S, quantity
from servesim.cost.step_time import StepTime
from servesim.engine.continuous import MOST_BLOCKS, MOST_SEQUENCES
from servesim.engine.kv_cache import KvCache
from servesim.engine.leap import Leap
from servesim.engine.log import Log, pack_step
from servesim.workload.lengths import MOST_TOKENS
from servesim.workload.request import Request

#: Tokens of a step for which a static engine keeps activations: longer padded prefills run in slices.
SLICE_TOKENS = 8192

_NO_BUDGET = "static batching computes whole padded batches: set batch_size instead"


@dataclass(frozen=True)
class Static:
    """Request-level batching, the baseline of iteration-level scheduling (Yu et al., Orca, OSDI 2022).

    A batch starts when ``batch_size`` requests wait or the oldest has waited ``batch_timeout_s``. Prompts
    are padded to the longest; every row is computed until the longest output ends.
    """

    batch_size: int = quantity("sequences", at_least=1, at_most=MOST_SEQUENCES, default=32)
    batch_timeout_s: float = quantity("s", at_least=0, at_most=MOST_S, default=0.05)
    block_size: int = quantity("tokens", at_least=1, at_most=MOST_TOKENS, default=16)
    gpu_memory_utilization: float = quantity("share of GPU memory", above=0, at_most=1, default=0.9)
    kv_cache_dtype: Literal["auto", "bf16", "fp8"] = quantity(default="auto")
    max_model_len: int | Literal["auto"] = quantity("tokens", at_least=2, at_most=MOST_TOKENS, default="auto")
    num_gpu_blocks_override: int | None = quantity("blocks", at_least=1, at_most=MOST_BLOCKS, default=None)

    hints: ClassVar[Mapping[str, str]] = {
        "max_num_seqs": _NO_BUDGET,
        "max_num_batched_tokens": _NO_BUDGET,
        "enable_chunked_prefill": _NO_BUDGET,
        "queue_order": "static batching takes requests as they come",
        "enable_prefix_caching": "static batching never preempts a request, so none could find its KV again",
        **dict.fromkeys(("preemption_mode", "swap_space"), "static batching never preempts a request"),
        "offload": "static batching keeps no KV from one batch to the next",
        "speculation": "static batching decodes one token at a time; scheduler=continuous drafts several",
    }

    @property
    def speculation(self) -> None:
        """What drafts tokens: nothing does."""
        return None

    @property
    def step_limits(self) -> tuple[int, int]:
        """Sequences and tokens that a step may have."""
        return self.batch_size, SLICE_TOKENS


class StaticEngine:
    """One replica: a queue, and at most one batch under way.

    The arguments are those of :class:`~servesim.engine.continuous.ContinuousEngine`.
    """

    def __init__(
        self,
        replica: int,
        scheduler: Static,
        step_time: StepTime,
        kv_blocks: int,
        log: Log,
        finished: Callable[[Request], None],
    ) -> None:
        self.replica = replica
        self.batch_size = scheduler.batch_size
        self.timeout_s = scheduler.batch_timeout_s
        self.step_time = step_time
        self.kv = KvCache(kv_blocks, scheduler.block_size, caches=False)
        self.waiting: deque[Request] = deque()
        #: the members of the batch that have tokens to come, the shortest output first
        self.running: deque[Request] = deque()
        self._rows = 0
        self._longest = 0
        self._emitted = 0
        self._given_up: set[Request] = set()
        self._leap = Leap()
        self._note: tuple[int, ...] = ()
        self._log_step = log.steps.frombytes
        self._finished = finished

    def submit(self, request: Request, now: float) -> float | None:
        """Queue a request; return when the next boundary should be at the latest, if that is to change."""
        self.waiting.append(request)
        return None if self._rows else self._next_start(max(now, request.arrived_s))

    def boundary(self, now: float) -> float | None:
        """Settle the steps that end now, plan those that follow; return when they end, or None when idle."""
        if self._leap.steps:
            self._settle(now)
        if self.running:
            return self._plan_decode(now)
        start_s = self._next_start(now)
        return self._start_batch(now) if start_s == now else start_s

    def abort(self, request: Request, now: float) -> None:
        """Give a request up; a member's row is computed all the same, until the batch ends."""
        if request in self.running:
            self._given_up.add(request)
            request.generated = self._emitted + self._leap.ended(now)
        else:
            self.waiting.remove(request)

    def full_step(self) -> tuple[float, int]:
        """Return the seconds and the tokens of the prefill of a whole batch of prompts like the next."""
        longest = self.waiting[0].input_tokens if self.waiting else self._longest
        chunks = [(longest, 0)] * self.batch_size
        return self.step_time.mixed(0, 0, chunks), longest * self.batch_size

    def prompt_tokens_ahead(self) -> int:
        """Return the tokens of the prompts that wait."""
        return sum(request.input_tokens for request in self.waiting)

    def halt(self, now: float) -> None:
        """Stop for good: settle the steps that have ended by now and forget the one under way."""
        if self._leap.halt(now):
            self._settle(self._leap.end_s)
        for request in self.running:
            request.generated = self._emitted

    def kv_used(self, now: float) -> int:
        """Return the KV blocks that the batch under way has reserved."""
        return self.kv.blocks - self.kv.free

    def cached_tokens_of(self, request: Request, now: float) -> int:
        """Return 0: nothing is found again."""
        return 0

    def _next_start(self, now: float) -> float | None:
        """Return when the next batch may start: now, when the oldest request times out, or None: never."""
        if len(self.waiting) >= self.batch_size:
            return now
        return max(now, self.waiting[0].arrived_s + self.timeout_s) if self.waiting else None

    def _start_batch(self, now: float) -> float:
        """Take the next batch, reserve its KV, and plan its padded prefill."""
        members, room = self._next_members()
        self.kv.free -= room
        self._rows = rows = len(members)
        self._longest = longest = max(request.input_tokens for request in members)
        self._emitted = 0
        for request in members:
            self.waiting.popleft()
            request.queue_s = max(now - request.arrived_s, 0.0)
        self.running.extend(sorted(members, key=lambda request: request.output_tokens))
        first_s = self.step_time.mixed(0, 0, [(longest, 0)] * rows)
        tokens = rows * longest
        self._note = (
            rows,
            0,
            tokens,
            tokens,
            rows * (longest * (longest + 1) // 2),
            room,
            room,
            len(self.waiting),
            0,
            0,
            0,
        )
        return self._leap.begin(now, 1, first_s, 0.0)

    def _next_members(self) -> tuple[list[Request], int]:
        """Return the longest part of the queue that makes a batch and fits, and the blocks it reserves."""
        members: list[Request] = []
        room = longest_input = longest_output = 0
        for request in self.waiting:
            longest_input = max(longest_input, request.input_tokens)
            longest_output = max(longest_output, request.output_tokens)
            needed = (len(members) + 1) * -(-(longest_input + longest_output) // self.kv.block_size)
            if len(members) == self.batch_size or needed > self.kv.free:
                break
            members.append(request)
            room = needed
        return members, room

    def _plan_decode(self, now: float) -> float:
        """Plan the decode steps up to the next member's last token."""
        rows, room = self._rows, self.kv.blocks - self.kv.free
        context = rows * (self._longest + self._emitted)
        base_s, slope_s, limit = self.step_time.decode(rows, context)
        steps = self.running[0].output_tokens - self._emitted
        if limit != inf:
            steps = min(steps, int(limit - context) // rows + 1)
        members = len(self.running)
        self._note = (rows, members, 0, context, context, room, room, len(self.waiting), 0, 0, members)
        return self._leap.begin(now, steps, base_s + slope_s * context, slope_s * rows)

    def _settle(self, now: float) -> None:
        """Let the steps under way have their effect: tokens emitted, members finished, the batch ended."""
        leap = self._leap
        self._log_step(
            pack_step(self.replica, leap.start_s, leap.first_s, leap.increment_s, leap.steps, *self._note)
        )
        if not self._emitted:
            for request in self.running:
                request.first_token_s = now
                request.prefill_s = now - request.arrived_s - request.queue_s
        self._emitted += leap.steps
        leap.steps = 0
        while self.running and self.running[0].output_tokens == self._emitted:
            request = self.running.popleft()
            if request in self._given_up:
                self._given_up.remove(request)
                continue
            request.finished_s = now
            request.generated = request.output_tokens
            self._finished(request)
        if not self.running:
            self._rows = 0
            self.kv.free = self.kv.blocks
