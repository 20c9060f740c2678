"""The KV tiers of a pool: the hosts of its replicas, and the store that they share."""

from __future__ import annotations

from servesim.cluster.deployment import Deployment
from servesim.cost.memory import GIB
from servesim.engine.copies import Copies
from servesim.engine.offload import Medium, Offload
from servesim.engine.tier import Tier
from servesim.engine.tiers import Shelf, Tiers


class Offloading:
    """Builds the tiers of each replica, and tells what went to them and came from them.

    A host is read and written over PCIe. The store is read and written over the NIC of each GPU, without a
    stop in the host's memory, as GPUDirect RDMA does it for Mooncake's store.
    """

    def __init__(self, offload: Offload, pool: Deployment) -> None:
        gpu, bytes_of_block = pool.gpu, pool.sheet.block_bytes
        self._media = {
            "host": (offload.host, gpu.pcie_bytes_per_s),
            "store": (offload.store, gpu.nic_bytes_per_s),
        }
        self._gpu_block_bytes = bytes_of_block
        self._block_bytes = bytes_of_block * pool.tensor_parallel_size
        self._store = offload.store and self._tier(offload.store)
        self._shelves: dict[str, list[Shelf]] = {"host": [], "store": []}

    def tiers(self) -> Tiers:
        """Return the tiers of one more replica."""
        shelves = []
        for name, (medium, line_bytes_per_s) in self._media.items():
            if medium is None:
                continue
            tier = self._store if name == "store" and self._store else self._tier(medium)
            block_s = self._gpu_block_bytes / medium.bandwidth(line_bytes_per_s)
            copies = (Copies(block_s, medium.latency_s) for _ in range(2))
            shelves.append(Shelf(tier, *copies))
            self._shelves[name].append(shelves[-1])
        return Tiers(shelves)

    def _tier(self, medium: Medium) -> Tier:
        return Tier(int(medium.capacity * GIB // self._block_bytes))

    def forget(self) -> None:
        """Begin anew at time 0 with what is in the tiers."""
        for shelf in (shelf for shelves in self._shelves.values() for shelf in shelves):
            shelf.tier.settle()
            shelf.loads.forget()
            shelf.writes.forget()

    def told(self) -> dict[str, dict[str, float]]:
        """Return of each kind of tier what was copied (blocks), and how long its links were busy (s)."""
        return {
            name: {
                "blocks": sum(tier.blocks for tier in {shelf.tier: None for shelf in shelves}),
                "used_blocks": sum(tier.used for tier in {shelf.tier: None for shelf in shelves}),
                "written_blocks": sum(shelf.writes.blocks for shelf in shelves),
                "loaded_blocks": sum(shelf.loads.blocks for shelf in shelves),
                "write_s": sum(shelf.writes.busy_s for shelf in shelves),
                "load_s": sum(shelf.loads.busy_s for shelf in shelves),
            }
            for name, shelves in self._shelves.items()
            if shelves
        }
