"""Recorded traffic: the times and lengths of a trace file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import repeat
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from servesim.check import LEAST_FACTOR, MOST_FACTOR, MOST_S, ConfigError, Problem, quantity
from servesim.streams import Streams
from servesim.workload.arrivals import LEAST_RPS, MOST_RPS, ClosedLoop
from servesim.workload.batch import BATCH_ROWS, MOST_REQUESTS, Batch, FloatArray, IntArray
from servesim.workload.formats import Options, Recording, read
from servesim.workload.formats.options import TimedTrace
from servesim.workload.formats.prefixes import Spans, shared_spans
from servesim.workload.notes import Notes
from servesim.workload.origin import ANYWHERE, Origin
from servesim.workload.tenant import Tenants, draw_tenants, tenant_origins


@dataclass(frozen=True)
class Trace:
    """The requests of a trace file, sent at their recorded times, open-loop.

    Rows are sorted by time; the window from ``start_s`` up to ``end_s`` (seconds after the earliest row, as
    recorded) is kept and shifted so that its first row is sent at 0; then all times are divided by
    ``rate_scale``. ``requests`` and ``duration_s`` (simulated seconds) end the sending, whichever is reached
    first. ``at_once``: the recorded times only order the requests and choose the window; all are due at 0.
    A row of 0 output tokens runs as 1. ``notes`` counts what was done. Where the file tells the blocks of the
    prompts, requests share what they begin with, unless ``prefix_sharing`` is off; answers are not among the
    blocks, so a later turn of a conversation shares with the earlier prompts alone.

    With ``rate_rps`` the requests come in the same order, but as a Poisson process of that rate, drawn from
    the stream of the arrivals; a file without times, such as ShareGPT's, is otherwise sent at once.

    The file is read once, when the configuration is checked or the requests are first asked for.
    """

    path: str = quantity("the path of a trace file")
    format: Literal[
        "auto",
        "azure",
        "mooncake",
        "vllm_timed",
        "burstgpt",
        "sharegpt",
        "vidur",
        "splitwise",
        "llmservingsim",
        "vllm_bench",
        "native",
    ] = quantity(default="auto")
    rate_scale: float = quantity(
        "times the recorded rate", at_least=LEAST_FACTOR, at_most=MOST_FACTOR, default=1.0
    )
    at_once: bool = quantity(default=False)
    start_s: float = quantity("s", at_least=0, at_most=MOST_S, default=0.0)
    end_s: float | None = quantity("s", above=0, at_most=MOST_S, default=None)
    requests: int | None = quantity("requests", at_least=1, at_most=MOST_REQUESTS, default=None)
    duration_s: float | None = quantity("s", above=0, at_most=MOST_S, default=None)
    rate_rps: float | None = quantity("requests/s", at_least=LEAST_RPS, at_most=MOST_RPS, default=None)
    timed_trace: TimedTrace = quantity(default=TimedTrace())
    tokenizer: str | None = quantity("the path of a tokenizer.json", default=None)
    characters_per_token: float = quantity("characters", at_least=0.1, at_most=1000, default=4.0)
    prefix_sharing: bool = quantity(default=True)
    tenants: Tenants = quantity("tenants by name", factory=dict)

    users: ClassVar[ClosedLoop | None] = None
    concurrency: ClassVar[int | None] = None
    hints: ClassVar[Mapping[str, str]] = {
        "arrivals": "a trace has its own times; set workload.rate_scale, workload.rate_rps to send its "
        "requests at a rate, or choose workload=synthetic",
        "lengths": "a trace has its own lengths; choose workload=synthetic to draw them",
    }

    @property
    def open_loop(self) -> bool:
        """Return whether requests come at times of their own: not all at once."""
        return self.timed

    @property
    def shares_prefixes(self) -> bool:
        """Return whether what one request leaves in a cache may be found by another."""
        return self._spans is not None

    @property
    def notes(self) -> Notes:
        """Return what was done to the rows of the file."""
        return self._reading[1]

    @property
    def timed(self) -> bool:
        """Return whether the requests come one after the other: at recorded times, or at a rate."""
        return not self.at_once and (self.rate_rps is not None or self._recording.timed)

    def batches(self, streams: Streams) -> Iterator[Batch]:
        """Yield the requests in order of sending, at most ``BATCH_ROWS`` at a time.

        Nothing is drawn unless there is a ``rate_rps``.
        """
        requests = self._reading[0]
        draw = draw_tenants(self.tenants, streams) if self.tenants else None
        if self.rate_rps is not None:
            requests = requests._replace(sent_s=self._arrivals(streams, requests.size))
        for start in range(0, requests.size, BATCH_ROWS):
            some = requests.rows(start, start + BATCH_ROWS)
            places = draw(some.size) if draw else None
            yield some._replace(origins=self._origins(start, some.size, places))

    def _origins(self, start: int, count: int, places: list[int] | None) -> list[Origin] | None:
        """Return where some requests come from, tenants given by their places; None: nothing is known."""
        spans, known = self._spans, tenant_origins(self.tenants) or [ANYWHERE]
        if spans is None:
            return None if places is None else [known[place] for place in places]
        found = spans.of(start, start + count)
        origins = repeat(known[0], count) if places is None else (known[place] for place in places)
        return [each._replace(prefix=own) if own else each for each, own in zip(origins, found, strict=True)]

    @cached_property
    def _spans(self) -> Spans | None:
        """What the prompts of the requests share; None where nothing is known, or wanted."""
        (requests, _), blocks = self._reading, self._recording.blocks
        if blocks is None or not self.prefix_sharing:
            return None
        return shared_spans(blocks.taken(self._rows[: requests.size]), requests.input_tokens)

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with the window, or with the file, or what does not go together."""
        if self.end_s is not None and self.end_s <= self.start_s:
            yield Problem("end_s", self.end_s, f"must be above start_s, {self.start_s:g} (s)")
            return
        if found := list(self._at_odds()):
            yield from found
            return
        try:
            timed, _ = self._recording.timed, self._reading
        except ConfigError as error:
            yield from error.problems
            return
        yield from () if timed else self._without_times()

    def _at_odds(self) -> Iterator[Problem]:
        """Yield the settings that do not go together, whatever is in the file."""
        if self.at_once:
            for name, unset in (("rate_rps", None), ("rate_scale", 1.0)):
                if (value := getattr(self, name)) != unset:
                    yield Problem(name, value, "does not go with at_once, which sends all at 0")
        if self.rate_rps is not None and self.duration_s is not None:
            message = "does not go with rate_rps, whose times are drawn; set requests instead"
            yield Problem("duration_s", self.duration_s, message)

    def _without_times(self) -> Iterator[Problem]:
        """Yield the settings that nothing of a file without times can follow."""
        if self.rate_scale != 1 and self.rate_rps is None and not self.at_once:
            message = "has no rate to multiply: the file has no times, so all is sent at once; set rate_rps"
            yield Problem("rate_scale", self.rate_scale, message)
        if self.end_s is not None:
            message = "cannot end a window: the file has no times; set requests instead"
            yield Problem("end_s", self.end_s, message)

    @cached_property
    def _recording(self) -> Recording:
        path = Path(self.path).expanduser()
        options = Options(self.timed_trace, self.tokenizer, self.characters_per_token)
        return _recorded(path, path.stat().st_mtime_ns if path.exists() else 0, self.format, options)

    @cached_property
    def _rows(self) -> IntArray:
        """The rows of the window, in order of time."""
        order = np.argsort(self._recording.time_ns, kind="stable")
        first, stop = self._window(self._recording.time_ns[order])
        return order[first:stop]

    @cached_property
    def _reading(self) -> tuple[Batch, Notes]:
        recording, kept = self._recording, self._rows
        sent_s, shift_ns = self._sent(recording.time_ns[kept])
        asked = Batch(sent_s, recording.input_tokens[kept], recording.output_tokens[kept])
        asked = asked.until(self.requests, self.duration_s)
        drawn = self.rate_rps is not None
        notes = Notes(
            rows=recording.size + sum(count for _, count in recording.left_out),
            requests=asked.size,
            out_of_order=int(np.count_nonzero(np.diff(recording.time_ns) < 0)),
            same_time=int(np.count_nonzero(np.diff(asked.sent_s) == 0)) if self.timed and not drawn else 0,
            zero_outputs=int(np.count_nonzero(asked.output_tokens == 0)),
            shifted_s=0.0 if drawn else float(shift_ns) / 1e9,
            no_requests=recording.left_out,
            remarks=(*recording.remarks, *self._on_times(recording.timed)),
        )
        return asked._replace(output_tokens=np.maximum(asked.output_tokens, 1)), notes

    def _sent(self, time_ns: IntArray) -> tuple[FloatArray, int]:
        """Return when requests of these times are sent, and the time that became 0."""
        if self.at_once:
            return np.zeros(len(time_ns)), int(time_ns[0])
        sent_s = (time_ns - time_ns[0]) / 1e9 / self.rate_scale
        last_s, name = sent_s[-1], "rate_scale"
        if self.rate_rps is not None:
            last_s, name = len(time_ns) / self.rate_rps / self.rate_scale, "rate_rps"
        if last_s > MOST_S:
            message = f"stretches the trace to {last_s:g} s, and it may last {MOST_S:g} s"
            raise ConfigError([Problem(name, getattr(self, name), message)])
        return sent_s, int(time_ns[0])

    def _arrivals(self, streams: Streams, count: int) -> FloatArray:
        """Return the moments of a Poisson process (seconds), those of ``workload/arrivals=poisson``."""
        assert self.rate_rps is not None
        gaps = streams.stream("arrivals").standard_exponential(count)
        return np.cumsum(gaps) / (self.rate_rps * self.rate_scale)

    def _on_times(self, recorded: bool) -> Iterator[str]:
        """Yield what became of the times of the file."""
        if self.rate_rps is not None:
            rate = self.rate_rps * self.rate_scale
            why = "recorded times left aside" if recorded else "no times in the file"
            yield f"{why}: Poisson at {rate:g}/s"
        elif not recorded:
            yield "no times in the file, so all is sent at once; workload.rate_rps sends at a rate"

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
def _recorded(path: Path, changed_ns: int, format: str, options: Options) -> Recording:
    """Return what a trace file holds; it is read once for as long as it does not change."""
    return read(path, format, **vars(options))
