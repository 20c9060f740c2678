"""What one measured run cost, and what it simulated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Sample:
    """One measured run.

    Attributes:
        cpu_s: CPU seconds of all threads: generation, simulation, summary and writing the files.
        peak_bytes: largest resident memory of the process.
        tokens: prompt tokens read and output tokens emitted.
        steps: engine steps, most of them leapt over.
        sequences: mean number of sequences in a step.
        events: scheduling events of the simulator.
        command_s: CPU seconds of the whole process, start-up included, where it was the command.
        file_bytes: size of the files written.
    """

    cpu_s: float
    peak_bytes: int
    requests: int
    tokens: int = 0
    steps: int = 0
    sequences: float = 0.0
    events: int = 0
    preemptions: int = 0
    command_s: float = 0.0
    file_bytes: int = 0


class Series:
    """Samples of one case: the same simulation, timed several times."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.run = samples[0]
        self.peak_bytes = max(sample.peak_bytes for sample in samples)
        self.best_s = min(sample.cpu_s for sample in samples)
        self.median_s = median(sample.cpu_s for sample in samples)
        self.command_s = median(sample.command_s for sample in samples)

    @property
    def best(self) -> float:
        """Requests per CPU second in the fastest run."""
        return self.run.requests / self.best_s

    @property
    def median(self) -> float:
        """Requests per CPU second in the median run."""
        return self.run.requests / self.median_s

    def per_request(self, amount: float) -> float:
        """Return an amount of one run per request."""
        return amount / self.run.requests
