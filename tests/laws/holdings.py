"""Counts the KV blocks that requests hold, one request at a time."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, isnan
from typing import Any

from servesim.engine.disaggregated import DecodeEngine, PrefillEngine
from servesim.engine.leftovers import Leftovers
from servesim.engine.static import StaticEngine
from servesim.engine.tiered_engine import TieredEngine
from servesim.workload.request import Request


def held_blocks(engine: Any, requests: Iterable[Request]) -> int:
    """Return the blocks of a replica that the requests hold between them, at an instant that is over."""
    if isinstance(engine, StaticEngine):
        return _reserved_for_batch(engine, requests)
    engine.decodes.update()
    held = sum(_held(request, engine) for request in engine.running)
    if isinstance(engine, PrefillEngine):
        kept = [request for request in requests if _leaving(request, engine)]
        held += sum(ceil(request.input_tokens / engine.kv.block_size) for request in kept)
    if isinstance(engine, TieredEngine):
        in_vain = [request for request in engine._given_up if request not in engine.running]
        held += sum(request.blocks for request in (*engine.loading, *engine.landed, *in_vain))
    if isinstance(engine, DecodeEngine):
        held += sum(request.blocks for request in requests if _arriving(request, engine))
    return held


def shared_blocks(engine: Any) -> int:
    """Return how many blocks too many there are when each request's are counted: those held by several."""
    if isinstance(engine.kv._reuse, Leftovers):
        return 0  # nobody looks for what others hold
    holds = engine.kv._reuse.holds
    named = [
        (key, place)
        for hold in holds.values()
        for key, first, stop in hold.pieces
        for place in range(first, int(min(stop, hold.named)))
    ]
    return len(named) - len(set(named))


def _held(request: Request, engine: Any) -> int:
    """Return the blocks of a running request: a decode has them for the token under way, too."""
    decodes = request.generated and request.computed == request.input_tokens + request.generated - 1
    if decodes and request is not engine.partial:
        return ceil((request.computed + 1) / engine.kv.block_size)
    return request.blocks


def _leaving(request: Request, engine: PrefillEngine) -> bool:
    """Say whether a request has been prefilled here, and has not landed elsewhere yet."""
    handed_over = request.prefill_replica == engine.replica and request.replica != -1
    return handed_over and request.transfer_s == 0.0


def _arriving(request: Request, engine: DecodeEngine) -> bool:
    """Say whether room is reserved here for a request that is in transfer, or has landed but does not run."""
    reserved = request.replica == engine.replica and request.decode_queue_s > 0.0
    return reserved and request not in engine.running and isnan(request.finished_s)


def _reserved_for_batch(engine: StaticEngine, requests: Iterable[Request]) -> int:
    """Return the room of the batch under way: rows x the blocks of the longest prompt and output."""
    if not engine.running:
        return 0
    mine = [request for request in requests if request.replica == engine.replica]
    started_s = max(request.sent_s + request.queue_s for request in engine.running)
    batch = [request for request in mine if abs(request.sent_s + request.queue_s - started_s) < 3e-7]
    longest = max(request.input_tokens for request in batch) + max(request.output_tokens for request in batch)
    return len(batch) * ceil(longest / engine.kv.block_size)
