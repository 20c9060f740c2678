"""The time of calls: CUDA events around replays of a graph of them, or a clock on a CPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from statistics import median
from time import perf_counter

import torch

from calibration.measure.bench import Bench, Prepared
from calibration.measure.protocol import CPU_ROUNDS, REPLAYS, TARGET_S


@dataclass(frozen=True)
class Timing:
    """The median time of one call (s), the fastest and slowest round, how many rounds, and how taken.

    ``how`` is ``graph`` (CUDA events around replays), ``eager`` (CUDA events around launches: short kernels
    show the host) or ``host`` (a clock of the host).
    """

    seconds: float
    fastest: float
    slowest: float
    rounds: int
    how: str

    @classmethod
    def of(cls, times: list[float], calls: int, how: str) -> Timing:
        """Return the timing of rounds of so many calls each."""
        return cls(median(times) / calls, min(times) / calls, max(times) / calls, len(times), how)


class Timer:
    """Times what a bench has prepared."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self._washer = None if bench.is_cpu else torch.ones(bench.cache_bytes // 2, device=bench.device)

    def timed(self, prepared: Prepared, rounds: int | None = None) -> Timing:
        """Return the time of one call, after a warm-up; ``rounds`` in place of as many as fit the time."""
        if self.bench.is_cpu:
            return self._by_clock(prepared, CPU_ROUNDS)
        for call in prepared.calls:
            call()
        torch.cuda.synchronize(self.bench.device)
        if prepared.on_host:
            return self._by_clock(prepared, rounds or REPLAYS[1])
        return self._by_events(prepared, rounds)

    def _by_clock(self, prepared: Prepared, rounds: int) -> Timing:
        """Time rounds of all calls by the host; what they launch ends outside the time."""
        times = []
        for _ in range(rounds + 1):
            prepared.reset()
            start = perf_counter()
            for call in prepared.calls:
                call()
            times.append(perf_counter() - start)
            if not self.bench.is_cpu:
                torch.cuda.synchronize(self.bench.device)
        return Timing.of(times[1:], len(prepared.calls), "host")

    def _by_events(self, prepared: Prepared, rounds: int | None) -> Timing:
        graph = None if prepared.capture is False else self._captured(prepared)
        run = graph.replay if graph else lambda: [call() for call in prepared.calls]
        warm = self._rounds(run, prepared.reset, 2)[-1]
        least, most = REPLAYS
        times = self._rounds(run, prepared.reset, rounds or min(max(ceil(TARGET_S / warm), least), most))
        return Timing.of(times, len(prepared.calls), "graph" if graph else "eager")

    def _rounds(self, run: Callable[[], object], reset: Callable[[], object], rounds: int) -> list[float]:
        """Time rounds on the GPU, the L2 cache filled with other data before each.

        That data is read, not written, so that none of it is written back while the calls run; and the host
        is ahead by the time it takes, so that no launch is waited for.
        """
        events = []
        for _ in range(rounds):
            self._washer.sum()
            reset()
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            run()
            end.record()
            events.append((start, end))
        torch.cuda.synchronize(self.bench.device)
        return [start.elapsed_time(end) * 1e-3 for start, end in events]

    def _captured(self, prepared: Prepared) -> torch.cuda.CUDAGraph | None:
        """Return the calls as one graph; None where they cannot be captured, unless they have to be."""
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                for call in prepared.calls:
                    call()
        except RuntimeError:
            if prepared.capture or self.bench.is_broken():
                raise
            return None
        return graph
