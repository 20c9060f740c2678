"""Where KV goes that the GPUs have no room for any more: what may be configured of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from servesim.check import LEAST_FACTOR, MOST_PER_S, MOST_S, Problem, quantity
from servesim.workload.lengths import MOST_TOKENS

#: A thousand times the memory of a large host.
MOST_GIB = 1e7


@dataclass(frozen=True)
class Medium:
    """A memory beside the GPU's: its room, and the link to it in each direction.

    The link moves ``efficiency`` of the line rate of each GPU's PCIe (host) or NIC (store), all GPUs of a
    replica at once, each its own part; ``bandwidth_bytes_per_s`` stands in place of both. ``latency_s``
    passes before the first byte of a copy.
    """

    capacity: float = quantity("GiB", at_least=0, at_most=MOST_GIB)
    bandwidth_bytes_per_s: float | None = quantity(
        "bytes/s per GPU and direction", at_least=1, at_most=MOST_PER_S, default=None
    )
    efficiency: float = quantity("share of line rate", at_least=LEAST_FACTOR, at_most=1, default=0.8)
    latency_s: float = quantity("s", at_least=0, at_most=MOST_S, default=0.0)

    def bandwidth(self, line_bytes_per_s: float) -> float:
        """Return the bytes/s of one GPU and direction, of a link with this line rate."""
        return self.bandwidth_bytes_per_s or self.efficiency * line_bytes_per_s


@dataclass(frozen=True)
class Offload:
    """KV tiers: the memory of each replica's host, and a store that all replicas share.

    What prefix caching loses on the GPU is written to the host, and what the host loses to the store
    (SGLang's HiCache calls this ``write_back``). A prompt that goes on in a tier where the GPU's cache ends,
    by ``min_load_tokens`` or more, waits until that is loaded, while others run (as in vLLM's
    ``WAITING_FOR_REMOTE_KVS``, vllm/v1/core/sched/scheduler.py). HiCache loads back 10 tokens or more, vLLM's
    OffloadingConnector whatever it finds; only whole blocks are found.
    """

    host: Medium | None = quantity(default=None)
    store: Medium | None = quantity(default=None)
    min_load_tokens: int = quantity("tokens", at_least=1, at_most=MOST_TOKENS, default=1)

    def problems(self) -> Iterator[Problem]:
        """Yield a problem where there is no tier at all."""
        if self.host is None and self.store is None:
            yield Problem("", None, "needs a host or a store; scheduler/offload=none keeps KV on the GPUs")
