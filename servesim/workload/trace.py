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
from servesim.workload.followed import Followed, Groups, TurnInputs
from servesim.workload.formats import Options, Recording, read
from servesim.workload.formats.options import TimedTrace
from servesim.workload.formats.prefixes import Spans
from servesim.workload.notes import Notes
from servesim.workload.origin import ANYWHERE, Origin
from servesim.workload.recorded import RecordedSessions
from servesim.workload.rows import Rows
from servesim.workload.tenant import Tenants, draw_tenants, tenant_origins
from servesim.workload.trace_settings import at_odds, remarks, too_late, without_times, without_turns


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

    Where the file tells sessions (:mod:`servesim.workload.formats.dialogue`), each begins at the time of its
    first row, and a later turn is sent when the answer before it has ended and its delay is over, but not
    before its own time, as far from the first turn as recorded; ``follow_turns`` off sends each row at its
    time. ``turn_inputs`` says whether lengths of later prompts are of all that was said (whole), or of what
    is new. The window is that of the sessions' first rows, and ``rate_rps`` the rate of sessions.

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
    follow_turns: bool = quantity(default=True)
    turn_inputs: TurnInputs = quantity(default="auto")
    tenants: Tenants = quantity("tenants by name", factory=dict)

    users: ClassVar[ClosedLoop | None] = None
    counted: ClassVar[bool] = True
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
        return self.recorded.shares_prefixes if self.recorded else self._spans is not None

    @property
    def notes(self) -> Notes:
        """Return what was done to the rows of the file."""
        told = self.timed, self.rate_rps is not None, remarks(self, self.recording)
        if (followed := self.followed) is None:
            return self.rows.notes(*told)
        return followed.notes(self.requests, *told)

    @property
    def timed(self) -> bool:
        """Return whether the requests come one after the other: at recorded times, or at a rate."""
        return not self.at_once and (self.rate_rps is not None or self.recording.timed)

    def batches(self, streams: Streams) -> Iterator[Batch]:
        """Yield the requests in order of sending, at most ``BATCH_ROWS`` at a time.

        Nothing is drawn without tenants and a ``rate_rps``. Of sessions the first requests: later ones wait.
        """
        if self.recorded is not None:
            yield from self.recorded.batches(streams)
            return
        requests, known = self.rows.requests, tenant_origins(self.tenants)
        draw = draw_tenants(self.tenants, streams) if self.tenants else None
        if self.rate_rps is not None:
            requests = requests._replace(sent_s=self._arrivals(streams, requests.size))
        for start in range(0, requests.size, BATCH_ROWS):
            some = requests.rows(start, start + BATCH_ROWS)
            senders = [known[place] for place in draw(some.size)] if draw else None
            yield some._replace(origins=self._origins(start, some.size, senders))

    def _origins(self, start: int, count: int, senders: list[Origin] | None) -> list[Origin] | None:
        """Return where some requests come from, of senders that are known or not; None: nothing is known."""
        if self._spans is None:
            return senders
        found = zip(senders or repeat(ANYWHERE, count), self._spans.of(start, start + count), strict=True)
        return [sender._replace(prefix=own) if own else sender for sender, own in found]

    @property
    def _spans(self) -> Spans | None:
        """What the prompts of the requests share; None where nothing is known, or wanted."""
        return self.rows.spans if self.prefix_sharing else None

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with the window, or with the file, or what does not go together."""
        if self.end_s is not None and self.end_s <= self.start_s:
            yield Problem("end_s", self.end_s, f"must be above start_s, {self.start_s:g} (s)")
            return
        if found := list(at_odds(self)):
            yield from found
            return
        try:
            timed, _ = self.recording.timed, self.recorded or self.rows
        except ConfigError as error:
            yield from error.problems
            return
        yield from () if timed else without_times(self)
        yield from without_turns(self, self.recording)
        yield from too_late(self)

    @cached_property
    def recorded(self) -> RecordedSessions | None:
        """The sessions of the file; None where each request is sent at a time of its own."""
        if (followed := self.followed) is None:
            return None
        rows = followed.groups.rows
        return RecordedSessions(
            begins_s=self._sent_s(followed.begins_ns),
            firsts=followed.groups.firsts,
            input_tokens=self.recording.input_tokens[rows],
            output_tokens=np.maximum(self.recording.output_tokens[rows], 1),
            waits_s=followed.dialogue.pause_ns[rows] / 1e9,
            offsets_s=followed.offsets_s * (0.0 if self.at_once else 1 / self.rate_scale),
            whole=followed.whole,
            spans=followed.spans if self.prefix_sharing else None,
            shares_prefixes=self.prefix_sharing,
            tenants=self.tenants,
            rate_rps=self.rate_rps and self.rate_rps * self.rate_scale,
            requests=self.requests,
            duration_s=self.duration_s,
        )

    @cached_property
    def followed(self) -> Followed | None:
        """The sessions that begin in the window; None where turns wait for nothing."""
        recording, dialogue = self.recording, self.recording.dialogue
        if dialogue is None or not self.follow_turns:
            return None
        groups = Groups.by_begin(dialogue.session, recording.time_ns)
        window = np.arange(*self._window(recording.time_ns[groups.opening]))
        return Followed(recording, dialogue, groups.taken(window), self.turn_inputs)

    @cached_property
    def recording(self) -> Recording:
        """All that the file holds."""
        path = Path(self.path).expanduser()
        options = Options(self.timed_trace, self.tokenizer, self.characters_per_token)
        return _recorded(path, path.stat().st_mtime_ns if path.exists() else 0, self.format, options)

    @cached_property
    def rows(self) -> Rows:
        """The rows of the window that are sent, in order of time."""
        recording = self.recording
        order = np.argsort(recording.time_ns, kind="stable")
        first, stop = self._window(recording.time_ns[order])
        kept = order[first:stop]
        rows = Rows(recording, kept, self._sent_s(recording.time_ns[kept]))
        return rows.until(self.requests, self.duration_s)

    def _sent_s(self, time_ns: IntArray) -> FloatArray:
        """Return when requests of these times are sent (seconds), the first of them at 0."""
        if self.at_once:
            return np.zeros(len(time_ns))
        sent_s: FloatArray = (time_ns - time_ns[0]) / 1e9 / self.rate_scale
        last_s, name = sent_s[-1], "rate_scale"
        if self.rate_rps is not None:
            last_s, name = len(time_ns) / self.rate_rps / self.rate_scale, "rate_rps"
        if last_s > MOST_S:
            message = f"stretches the trace to {last_s:g} s, and it may last {MOST_S:g} s"
            raise ConfigError([Problem(name, getattr(self, name), message)])
        return sent_s

    def _arrivals(self, streams: Streams, count: int) -> FloatArray:
        """Return the moments of a Poisson process (seconds), those of ``workload/arrivals=poisson``."""
        assert self.rate_rps is not None
        gaps = streams.stream("arrivals").standard_exponential(count)
        return np.cumsum(gaps) / (self.rate_rps * self.rate_scale)

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
