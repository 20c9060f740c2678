"""What an engine of continuous batching is built of."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from servesim.cost.step_time import StepTime
from servesim.engine.continuous import Continuous
from servesim.engine.log import Log
from servesim.engine.swap_space import SwapSpace
from servesim.engine.token_draws import TokenDraws
from servesim.workload.request import Request


class Setup(NamedTuple):
    """What every engine of continuous batching is given.

    Attributes:
        replica: the global index of the replica, for the log.
        scheduler: the limits of a step.
        step_time: the duration of a step.
        kv_blocks: KV blocks of the replica.
        log: where steps and torn gaps between tokens are written.
        finished: called with each request at its last token.
        draws: how many tokens the decode steps of each request emit; None: one each.
        swap: host memory for the KV of who is preempted; None: that is recomputed.
        shares: whether KV that one request leaves may be found by another.
    """

    replica: int
    scheduler: Continuous
    step_time: StepTime
    kv_blocks: int
    log: Log
    finished: Callable[[Request], None]
    draws: TokenDraws | None = None
    swap: SwapSpace | None = None
    shares: bool = True
