"""Two queues in a row: prefill, then decode."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from servesim.cluster.disaggregated import Disaggregated
from servesim.workload.arrivals import Poisson
from servesim.workload.lengths import Geometric
from tests.costs import AffineStepTime, constant_step
from tests.queueing.replications import STEP_S, assert_recovers, mean_of, replicate
from tests.serving import Service


class GeometricPrompts(Geometric):
    """Prompts of geometric length; all outputs are of the mean length."""

    def tokens(self, normals: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return one pair of lengths per row of ``normals``."""
        inputs, _ = super().tokens(normals)
        return inputs, np.full(len(normals), int(self.output))


def test_decode_waits_behind_prefill_as_if_it_were_alone() -> None:
    """What leaves an M/M/1 is a Poisson process again (Burke, Operations Research 4(6), 1956).

    Prompts of 1,000 tokens in the mean at 1 ms each, one at a time, 0.5 requests/s: the prefill replica is an
    M/M/1. A transfer of 0.3 s only moves what leaves it in time. So the decode replica, with outputs of
    1,000 tokens at 1 ms each, is an M/D/1: W = 0.5 x 1 / (2 x 0.5) = 0.5 s. (With 1.03 ms: 0.5469 s.)
    """
    service = Service(
        Disaggregated(max_num_seqs=1),
        AffineStepTime(step_s=0.0, prefill_token_s=STEP_S),
        decode_step_time=constant_step(STEP_S),
        latency_s=0.3,
    )
    waits = replicate(service, Poisson(0.5), GeometricPrompts(1000, 1000), mean_of("decode_queue_s"), 1000)
    assert_recovers(waits, 0.5, mistake=0.5469)
