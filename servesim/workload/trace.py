"""Recorded traffic: the times and lengths of a trace file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from servesim.check import LEAST_FACTOR, MOST_FACTOR, MOST_S, ConfigError, Problem, quantity
from servesim.streams import Streams
from servesim.workload import azure
from servesim.workload.batch import BATCH_ROWS, MOST_REQUESTS, Batch
from servesim.workload.notes import Notes


@dataclass(frozen=True)
class Trace:
    """The requests of a trace file, sent at their recorded times, open-loop.

    Rows are sorted by time; the window from ``start_s`` up to ``end_s`` (seconds after the earliest row, as
    recorded) is kept and shifted so that its first row is sent at 0; then all times are divided by
    ``rate_scale``. ``requests`` and ``duration_s`` (simulated seconds) end the sending, whichever is reached
    first. ``at_once``: the recorded times only order the requests and choose the window; all are due at 0.
    A row of 0 output tokens runs as 1. ``notes`` counts what was done.

    The file is read once, when the configuration is checked or the requests are first asked for.
    """

    path: str = quantity("the path of a trace file")
    format: Literal["auto", "azure"] = quantity(default="auto")
    rate_scale: float = quantity(
        "times the recorded rate", at_least=LEAST_FACTOR, at_most=MOST_FACTOR, default=1.0
    )
    at_once: bool = quantity(default=False)
    start_s: float = quantity("s", at_least=0, at_most=MOST_S, default=0.0)
    end_s: float | None = quantity("s", above=0, at_most=MOST_S, default=None)
    requests: int | None = quantity("requests", at_least=1, at_most=MOST_REQUESTS, default=None)
    duration_s: float | None = quantity("s", above=0, at_most=MOST_S, default=None)

    concurrency: ClassVar[int | None] = None
    hints: ClassVar[Mapping[str, str]] = {
        "arrivals": "a trace has its own times; set workload.rate_scale, or choose workload=synthetic",
        "rate_rps": "a trace has its own rate; set workload.rate_scale",
        "lengths": "a trace has its own lengths; choose workload=synthetic to draw them",
    }

    @property
    def open_loop(self) -> bool:
        """Return whether requests come at times of their own: not all at once."""
        return not self.at_once

    @property
    def notes(self) -> Notes:
        """Return what was done to the rows of the file."""
        return self._reading[1]

    def batches(self, streams: Streams) -> Iterator[Batch]:
        """Yield the requests in order of sending, at most ``BATCH_ROWS`` at a time; nothing is drawn."""
        requests = self._reading[0]
        for start in range(0, requests.size, BATCH_ROWS):
            yield requests.rows(start, start + BATCH_ROWS)

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with the window, or with the file."""
        if self.end_s is not None and self.end_s <= self.start_s:
            yield Problem("end_s", self.end_s, f"must be above start_s, {self.start_s:g} (s)")
            return
        try:
            _ = self._reading
        except ConfigError as error:
            yield from error.problems

    @cached_property
    def _reading(self) -> tuple[Batch, Notes]:
        path = Path(self.path).expanduser()
        recording = _recorded(path, path.stat().st_mtime_ns if path.exists() else 0)
        order = np.argsort(recording.time_ns, kind="stable")
        first, stop = self._window(recording.time_ns[order])
        kept = order[first:stop]
        shift_ns = recording.time_ns[kept[0]]
        sent_s = (recording.time_ns[kept] - shift_ns) / 1e9 / self.rate_scale
        if self.at_once:
            sent_s = np.zeros_like(sent_s)
        asked = Batch(sent_s, recording.input_tokens[kept], recording.output_tokens[kept])
        asked = asked.until(self.requests, self.duration_s)
        if asked.size and asked.sent_s[-1] > MOST_S:
            message = f"stretches the trace to {asked.sent_s[-1]:g} s, and it may last {MOST_S:g} s"
            raise ConfigError([Problem("rate_scale", self.rate_scale, message)])
        notes = Notes(
            rows=len(order),
            requests=asked.size,
            out_of_order=int(np.count_nonzero(np.diff(recording.time_ns) < 0)),
            same_time=0 if self.at_once else int(np.count_nonzero(np.diff(asked.sent_s) == 0)),
            zero_outputs=int(np.count_nonzero(asked.output_tokens == 0)),
            shifted_s=float(shift_ns) / 1e9,
        )
        return asked._replace(output_tokens=np.maximum(asked.output_tokens, 1)), notes

    def _window(self, time_ns: np.ndarray) -> tuple[int, int]:
        """Return where the window starts and stops among the sorted times."""
        elapsed_s = (time_ns - time_ns[0]) / 1e9
        stop = len(time_ns) if self.end_s is None else int(np.searchsorted(elapsed_s, self.end_s))
        first = int(np.searchsorted(elapsed_s, self.start_s))
        if first >= stop:
            message = f"no row is in the window up to end_s (the trace is {elapsed_s[-1]:g} s long)"
            raise ConfigError([Problem("start_s", self.start_s, message)])
        return first, stop


@lru_cache(maxsize=2)
def _recorded(path: Path, changed_ns: int) -> azure.Recording:
    """Return what a trace file holds; it is read once for as long as it does not change."""
    return azure.read(path)
