"""Host memory that takes the KV of preempted requests until they run again."""

from __future__ import annotations

from dataclasses import dataclass

from servesim.workload.request import Request


@dataclass
class Swaps:
    """How much was swapped, and what it took.

    Attributes:
        out: requests whose KV went to the host.
        refused: requests for whose KV the host had no room, so that they were recomputed.
        out_blocks: KV blocks copied to the host.
        in_blocks: KV blocks copied back; those still in the GPU's cache need not be.
        seconds: what the copies added to steps, all replicas together.
    """

    out: int = 0
    refused: int = 0
    out_blocks: int = 0
    in_blocks: int = 0
    seconds: float = 0.0

    def forget(self) -> None:
        """Begin to count anew."""
        self.out = self.refused = self.out_blocks = self.in_blocks = 0
        self.seconds = 0.0


class SwapSpace:
    """The host blocks of one replica, as vLLM V0's CPU blocks (``--swap-space``).

    A preempted request's blocks are copied out, and back when it is scheduled again. Both copies stand on the
    compute stream before the kernels of the step that they are ordered in (vLLM V0: ``execute_worker`` comes
    before the model runs, vllm/worker/worker_base.py; one stream, github.com/vllm-project/vllm/pull/3461), so
    they lengthen it by blocks x bytes of a block / bandwidth, one after the other.

    Args:
        blocks: KV blocks that the host has room for.
        block_size: tokens of a block.
        block_s: seconds that the copy of a block takes, every GPU of the replica its own part at once.
        swaps: where it is counted.
    """

    __slots__ = ("_block_s", "_block_size", "blocks", "free", "ordered", "swaps")

    def __init__(self, blocks: int, block_size: int, block_s: float, swaps: Swaps) -> None:
        self.blocks = self.free = blocks
        #: blocks whose copies no step has waited for yet
        self.ordered = 0
        self.swaps = swaps
        self._block_size = block_size
        self._block_s = block_s

    def take(self, request: Request) -> None:
        """Copy out all that is computed of a request that loses its blocks, if it has room here."""
        blocks = -(-request.computed // self._block_size)
        if blocks > self.free:
            self.swaps.refused += 1
            return
        self.free -= blocks
        request.swapped = request.computed
        self.ordered += blocks
        self.swaps.out += 1
        self.swaps.out_blocks += blocks

    def give_back(self, request: Request, found: int) -> None:
        """Copy back what lies behind the ``found`` blocks of a request that is scheduled again."""
        missing = max(self.drop(request) - found, 0)
        self.ordered += missing
        self.swaps.in_blocks += missing

    def drop(self, request: Request) -> int:
        """Forget what is here of a request; return how many blocks that was."""
        blocks = -(-request.swapped // self._block_size)
        self.free += blocks
        request.swapped = 0
        return blocks

    def wait_s(self) -> float:
        """Return how long the next step waits for the copies ordered since the last one."""
        seconds = self.ordered * self._block_s
        self.ordered = 0
        self.swaps.seconds += seconds
        return seconds
