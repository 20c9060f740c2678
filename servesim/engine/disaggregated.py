"""The two halves of a disaggregated deployment: engines that only prefill, and engines that only decode.

(Zhong et al., DistServe, OSDI 2024; Patel et al., Splitwise, ISCA 2024.) Both batch continuously; they
differ from a whole engine only where a request comes in and where it leaves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Literal

from servesim.engine.continuous_engine import ContinuousEngine
from servesim.engine.setup import Setup
from servesim.workload.request import Request

#: Which pool emits token 1: the decode replica recomputes the last prompt position, or prefill emits it.
FirstToken = Literal["decode", "prefill"]


class PrefillEngine(ContinuousEngine):
    """Prefills prompts and hands them over; their blocks stay held until :meth:`release`.

    Args:
        first_token: the pool that emits token 1.
        handed_over: called with each request whose prompt is computed and that still has tokens to come.
    """

    def __init__(
        self,
        setup: Setup,
        first_token: FirstToken,
        handed_over: Callable[[Request], None],
    ) -> None:
        super().__init__(setup)
        self._first_token = first_token
        self._handed_over = handed_over

    def release(self, request: Request, now: float) -> float | None:
        """Free the blocks of a request that has been handed over; return when to wake, if need be."""
        self.kv.leave(request, request.input_tokens)
        return now if self.waiting and not self._leap.steps else None

    def _schedule(self, request: Request, tokens: int) -> bool:
        """Schedule as any engine does, but restart a preempted prompt only if it fits as a whole.

        Blocks held for requests in transfer come free without any step of this engine; chunk by chunk a
        restarted prompt would meanwhile be thrown out again and again.
        """
        restart = request.preemptions and request not in self.running
        if restart and self.kv.short(request, request.missing_tokens()) > self.kv.free:
            return False
        return super()._schedule(request, tokens)

    def _prefilled(self, request: Request, now: float) -> None:
        if request is self.partial:
            self.partial = None
        request.handed_s = now
        if self._first_token == "prefill":
            self._emit_first(request, now)
            request.generated = 1
            if request.output_tokens == 1:
                self.kv.leave(request, request.computed)
                self._finish(request, now)
                return
        else:
            request.end_prefill(now)
        del self.running[request]
        self._handed_over(request)


class DecodeEngine(ContinuousEngine):
    """Takes requests over from prefill replicas: reserves room, lets the KV land, decodes.

    ``incoming`` requests wait for room for their prompt; ``landed`` ones hold it, their KV is here but for
    the newest token, and they wait for a slot; ``waiting`` holds those preempted here, to be recomputed.

    Args:
        reserved: called with each request for which room has been reserved, so that its transfer may start.
    """

    def __init__(self, setup: Setup, reserved: Callable[[Request], None]) -> None:
        super().__init__(setup._replace(shares=False))
        self._lands = True
        self.incoming: deque[Request] = deque()
        self.landed: deque[Request] = deque()
        self._reserved = reserved

    def submit(self, request: Request, now: float) -> float | None:
        """Queue a request for room; return when the next boundary should be, if it changes."""
        request.computed = request.blocks = 0
        self.incoming.append(request)
        if not self._leap.steps:
            return now
        first = len(self.incoming) == 1 and not self.waiting
        return self._leap.cut(now) if first and self._room_for(request) <= self.kv.free else None

    def land(self, request: Request, now: float) -> float | None:
        """Queue a request whose KV has arrived; return when the next boundary should be, if it changes."""
        request.computed = request.input_tokens + request.generated - 1
        self.landed.append(request)
        if not self._leap.steps:
            return now
        return self._leap.cut(now) if self._admissible(self.landed, request) else None

    def abort(self, request: Request, now: float) -> float | None:
        """Give a request up; one whose KV has yet to arrive here stays until it has (:meth:`decline`)."""
        if request in self.landed:
            self.landed.remove(request)
            return self.decline(request, now)
        if request in self.incoming:
            self.incoming.remove(request)
        elif request in self.running or request in self.waiting:
            return super().abort(request, now)
        return self._leap.cut(now) if self._leap.steps else now

    def _let_go(self, request: Request) -> None:
        """Free the blocks of a request that runs, or the room of one that never has."""
        if request in self.running:
            super()._let_go(request)
        else:
            self.kv.leave(request, request.blocks * self.kv.block_size)

    def _room_for(self, request: Request) -> int:
        """Return the blocks of the prompt and of the tokens emitted, the newest included."""
        return self.kv.short(request, request.input_tokens + request.generated)

    def _admit(self, now: float) -> None:
        """Admit the landed before the preempted, so that no held block waits for a free one; then reserve."""
        for queue in (self.landed, self.waiting):
            self._admit_from(queue, now)
            if queue:
                break
        while self.incoming and not self.waiting:
            request = self.incoming[0]
            room = self._room_for(request)
            if room > self.kv.free:
                break
            self.incoming.popleft()
            self.kv.free -= room
            request.blocks = room
            self._reserved(request)

    def _queue_length(self) -> int:
        return len(self.waiting) + len(self.landed) + len(self.incoming)

    def _emit_first(self, request: Request, now: float) -> None:
        request.first_token_s = now
