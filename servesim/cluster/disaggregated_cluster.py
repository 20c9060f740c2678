"""The cluster of two pools: one prefills and hands over to one that decodes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from servesim.cluster.cluster import Cluster
from servesim.cluster.deployment import Deployment
from servesim.cluster.disaggregated import Disaggregated
from servesim.cluster.group import Group
from servesim.cluster.router import Router
from servesim.cluster.transfer import Links
from servesim.engine.clock import EARLY_S, Clock
from servesim.engine.disaggregated import DecodeEngine, PrefillEngine
from servesim.engine.log import COMPLETED, Log
from servesim.streams import Streams
from servesim.workload.request import Request


class DisaggregatedCluster(Cluster):
    """A prefill pool that hands each request over to a decode pool, its KV travelling over links.

    The decode replica is chosen when the prompt is computed; it reserves room for the prompt before the
    transfer starts, and until the last byte has arrived the prefill replica holds its blocks. So a full
    decode pool holds the prefill pool back, and nothing is lost.
    """

    def __init__(
        self,
        clock: Clock,
        prefill: Deployment,
        decode: Deployment,
        scheduler: Disaggregated,
        router: Router,
        links: Links,
        streams: Streams,
        log: Log,
        *,
        shares_prefixes: bool = True,
    ) -> None:
        super().__init__(log, min(prefill.max_model_len, decode.max_model_len))
        self._clock = clock
        self._links = links
        self._kv_bytes_per_token = prefill.kv_bytes_per_token
        draws = scheduler.draws(streams)

        def prefill_engine(index: int) -> PrefillEngine:
            told = self._finished_at_prefill
            setup = self._setup(index, scheduler, prefill, told, None, shares_prefixes)
            return PrefillEngine(setup, scheduler.first_token, self._hand_over)

        def decode_engine(index: int) -> DecodeEngine:
            setup = self._setup(index, scheduler, decode, self._finished, draws, shares_prefixes)
            return DecodeEngine(setup, self._transfer)

        caches = scheduler.enable_prefix_caching
        self._prefill = Group(clock, prefill, router, streams.stream("router"), prefill_engine, caches)
        self._decode = Group(clock, decode, router, streams.stream("decode router"), decode_engine)

    @property
    def groups(self) -> tuple[Group[Any], ...]:
        """The groups of replicas, in the order of their global indices."""
        return (self._prefill, self._decode)

    def _route(self, request: Request) -> None:
        request.prefill_replica = self._enter(self._prefill, request)

    def _abort(self, request: Request) -> None:
        """Let either engine give a request up.

        One without room on its decode replica yet lets go of its prefill blocks, too. What is on a link
        cannot be called back: the blocks at both ends are freed when it has arrived, as vLLM does with what
        waits for remote KV (vLLM, vllm/v1/core/sched/scheduler.py).
        """
        if request.replica < 0:
            self._prefill.abort(request, request.prefill_replica)
            return
        if request in self._decode.replica(request.replica).engine.incoming:
            self._release(request)
        self._decode.abort(request, request.replica)

    def _finished_at_prefill(self, request: Request) -> None:
        self._prefill.left(request.prefill_replica)
        self._leave(request, COMPLETED)

    def _hand_over(self, request: Request) -> None:
        """Choose the decode replica of a request whose prompt is computed, and ask it for room."""
        request.replica = self._decode.choose(request)
        self._tell(partial(self._offer, request))

    def _offer(self, request: Request) -> None:
        if request in self._open:
            self._decode.replica(request.replica).submit(request)
        else:
            self._release(request)

    def _transfer(self, request: Request) -> None:
        """Start the transfer of a request for which its decode replica has reserved room."""
        request.start_transfer(self._clock.now)
        size_bytes = request.input_tokens * self._kv_bytes_per_token
        source = request.prefill_replica - self._prefill.first
        target = request.replica - self._decode.first
        self._links.send(source, target, size_bytes, partial(self._landed, request))

    def _landed(self, request: Request) -> None:
        """Free the prefill replica's blocks and queue the request where its KV now is."""
        request.land(self._clock.now)
        self._release(request)
        self._tell(partial(self._land, request))

    def _release(self, request: Request) -> None:
        """Let the prefill replica free a request's blocks."""
        source = self._prefill.replica(request.prefill_replica)
        source.wake_by(source.engine.release(request, self._clock.now))
        self._prefill.left(request.prefill_replica)

    def _land(self, request: Request) -> None:
        target, now = self._decode.replica(request.replica), self._clock.now
        came = target.engine.land if request in self._open else target.engine.decline
        target.wake_by(came(request, now))

    def _finished(self, request: Request) -> None:
        self._decode.left(request.replica)
        self._leave(request, COMPLETED)

    def _tell(self, message: Callable[[], None]) -> None:
        """Deliver a message between replicas just after now, so that rounding never decides on its order."""
        self._clock.call_at(self._clock.now + EARLY_S, message)
