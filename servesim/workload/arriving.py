"""What workloads have in common that draw from an arrival process."""

from __future__ import annotations

from dataclasses import dataclass

from servesim.workload.arrivals import Burst, ClosedLoop, OpenLoop
from servesim.workload.vllm_bench import VllmBench


@dataclass(frozen=True)
class Arriving:
    """Requests or sessions that come as a process does, or from the users of a closed loop."""

    arrivals: OpenLoop | VllmBench | ClosedLoop

    @property
    def users(self) -> ClosedLoop | None:
        """Return the users of a closed loop; None where all comes at times of its own."""
        return self.arrivals if isinstance(self.arrivals, ClosedLoop) else None

    @property
    def concurrency(self) -> int | None:
        """Return the number of users of a closed loop; None where there is none."""
        return self.users.concurrency if self.users else None

    @property
    def open_loop(self) -> bool:
        """Return whether all begins at times of its own; later turns of sessions always wait for answers."""
        return not isinstance(self.arrivals, (ClosedLoop, Burst))
