"""The warm-up: requests that run to completion before anything is measured."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np

from servesim.cluster.client import Semaphore
from servesim.cluster.cluster import Cluster
from servesim.engine.clock import Clock
from servesim.workload.batch import Batch


def warm_up(
    clock: Clock, cluster: Cluster, batches: Iterator[Batch], count: int, max_concurrency: int | None
) -> tuple[Iterator[Batch], int]:
    """Run copies of the first request to completion; return all the requests, and how many copies ran.

    As ``vllm bench serve --num-warmups`` (vLLM, vllm/benchmarks/serve.py): all are sent at once, and
    ``max_concurrency`` holds for them, too. Then the clock begins at 0 again and what they left in the log is
    gone; a router remembers them. Where nothing is to be sent there is nothing to copy.
    """
    first = next(batches, None)
    if first is None:
        return iter(()), 0
    inputs, outputs = (np.repeat(column[:1], count) for column in (first.input_tokens, first.output_tokens))
    origins = None if first.origins is None else [first.origins[0]] * count
    copies = Batch(np.zeros(count), inputs, outputs, origins)
    Semaphore(clock, iter([copies]), cluster, lambda sent: None, max_concurrency or count)
    clock.run_until()
    cluster.forget()
    clock.restart()
    return chain([first], batches), count
