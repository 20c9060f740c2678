"""Recorded conversations: sessions of a trace whose turns wait for the answers before them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise, takewhile
from typing import ClassVar, NamedTuple

import numpy as np

from servesim.streams import Streams
from servesim.workload.arrivals import ClosedLoop
from servesim.workload.batch import BATCH_ROWS, MOST_REQUESTS, Batch, FloatArray, IntArray
from servesim.workload.formats.prefixes import Spans
from servesim.workload.origin import ANYWHERE, Origin
from servesim.workload.tenant import Tenants, draw_tenants, tenant_origins


class RecordedSession(NamedTuple):
    """The turns of one recorded conversation, in order.

    Attributes:
        origins: where the request of each turn comes from.
        prompts: tokens of each turn's prompt, all of it.
        outputs: tokens of each answer.
        waits_s: seconds from the answer before each turn to its sending.
        offsets_s: seconds from the first sending before which each turn is not sent.

    """

    origins: list[Origin]
    prompts: list[int]
    outputs: list[int]
    waits_s: list[float]
    offsets_s: list[float]

    @property
    def turns(self) -> int:
        """Return the number of turns."""
        return len(self.prompts)

    def origin_of(self, turn: int) -> Origin:
        """Return where the request of a turn comes from."""
        return self.origins[turn]

    def prompt(self, turn: int, said: int) -> int:
        """Return the tokens of a turn's prompt, whatever has been said."""
        return self.prompts[turn]

    def sent_s(self, turn: int, begun_s: float, answered_s: float) -> float:
        """Return when a later turn is sent (seconds), the answer before it having ended at ``answered_s``."""
        return max(answered_s + self.waits_s[turn], begun_s + self.offsets_s[turn])

    def turns_within(self, first: float, later: float) -> int:
        """Return how many turns go by before a prompt of more than ``first`` tokens, or ``later`` then."""
        limits = [first] + [later] * (self.turns - 1)
        rooms = zip(self.prompts, limits, strict=True)
        return sum(1 for _ in takewhile(lambda room: room[0] <= room[1], rooms))


@dataclass(frozen=True, eq=False)
class RecordedSessions:
    """The sessions of a trace, as a client of conversations takes them.

    Columns have a row for each request, the turns of a session one after the other; session i has those from
    ``firsts[i]`` up to ``firsts[i + 1]`` and begins at ``begins_s[i]``, or as a Poisson process of
    ``rate_rps`` has it. Prompts are ``whole``, or what is new in each: all that was said is before it.
    ``spans`` tell what whole prompts share, or else the first ones of sessions; None: nobody knows.
    ``shares_prefixes``: whether turns may find what was computed for those before them.
    """

    begins_s: FloatArray
    firsts: IntArray
    input_tokens: IntArray
    output_tokens: IntArray
    waits_s: FloatArray
    offsets_s: FloatArray
    whole: bool
    spans: Spans | None
    shares_prefixes: bool
    tenants: Tenants
    rate_rps: float | None
    requests: int | None
    duration_s: float | None

    users: ClassVar[ClosedLoop | None] = None
    max_context_tokens: ClassVar[int | None] = None

    @property
    def counted(self) -> bool:
        """Return whether it is known how many requests there are, whenever answers come."""
        return self.duration_s is None

    @property
    def grows(self) -> bool:
        """Return whether a prompt has at least one token of each turn up to its own."""
        return not self.whole

    @property
    def sessions(self) -> int:
        """Return the number of sessions."""
        return len(self.begins_s)

    @property
    def latest_s(self) -> float:
        """Return when the last turn is sent if answers take no time (seconds); of drawn begins, the mean.

        A turn waits for all pauses since a turn that is sent at its time: with W the pauses up to a turn of
        its session and o the offsets, the last of n is sent W_n + max over i of (o_i - W_i) after its begin.
        """
        waits_s = np.cumsum(self.waits_s)
        slack_s = np.maximum.reduceat(self.offsets_s - waits_s, self.firsts[:-1])
        begins_s = self.begins_s if self.rate_rps is None else self.sessions / self.rate_rps
        return float(np.max(begins_s + waits_s[self.firsts[1:] - 1] + slack_s))

    @property
    def most_requests(self) -> int | None:
        """Return how many requests are sent at the most; None: all."""
        return self.requests

    @property
    def requests_per_session(self) -> float:
        """Return the mean number of requests of a session that nothing ends early."""
        return len(self.input_tokens) / self.sessions

    def starts_s(self, streams: Streams) -> Iterator[float]:
        """Yield when the sessions begin (seconds)."""
        if self.rate_rps is None:
            yield from self.begins_s.tolist()
            return
        gaps = streams.stream("arrivals").standard_exponential(self.sessions)
        yield from (np.cumsum(gaps) / self.rate_rps).tolist()

    def conversations(self, streams: Streams, most_turns: int = MOST_REQUESTS) -> Iterator[RecordedSession]:
        """Yield the sessions in the order in which they begin, of each at most ``most_turns``."""
        draw = draw_tenants(self.tenants, streams) if self.tenants else None
        known = tenant_origins(self.tenants)
        for start in range(0, self.sessions, BATCH_ROWS):
            rows = list(pairwise(self.firsts[start : start + BATCH_ROWS + 1].tolist()))
            own = [known[place] for place in draw(len(rows))] if draw else [ANYWHERE] * len(rows)
            for number, ((first, stop), origin) in enumerate(zip(rows, own, strict=True), start):
                yield self._session(number, first, min(stop, first + most_turns), origin)

    def batches(self, streams: Streams) -> Iterator[Batch]:
        """Yield the first request of each session; later ones wait for answers."""
        starts_s, sessions = self.starts_s(streams), self.conversations(streams, most_turns=1)
        first = self.firsts[:-1]
        columns = np.array(list(starts_s)), self.input_tokens[first], self.output_tokens[first]
        yield Batch(*columns, [each.origin_of(0) for each in sessions])

    def _session(self, number: int, first: int, stop: int, origin: Origin) -> RecordedSession:
        """Return a session from its rows."""
        rows = slice(first, stop)
        new, outputs = self.input_tokens[rows].tolist(), self.output_tokens[rows].tolist()
        prompts = new
        if not self.whole:
            grown = (more + answer for more, answer in zip(new[1:], outputs, strict=False))
            prompts = list(accumulate(grown, initial=new[0]))
        origins = self._origins(origin._replace(session=number), first, stop)
        return RecordedSession(
            origins, prompts, outputs, self.waits_s[rows].tolist(), self.offsets_s[rows].tolist()
        )

    def _origins(self, session: Origin, first: int, stop: int) -> list[Origin]:
        """Return where the turns of a session come from.

        Whole prompts have in common what their blocks say, or without any all that was said. Of others each
        goes on where the last answer ended, behind what the first one shares with other sessions.
        """
        number, turns, spans = session.session, stop - first, self.spans
        if self.whole:
            if spans is None:
                streams = self._streams(first, stop) if self.shares_prefixes else [None] * turns
                return [session._replace(turn=turn, stream=own) for turn, own in enumerate(streams)]
            return [session._replace(turn=turn, prefix=own) for turn, own in enumerate(spans.of(first, stop))]
        if spans is not None:
            (prefix,) = spans.of(number, number + 1)
            session = session._replace(prefix=prefix)
        if self.shares_prefixes:
            spanned = 0 if spans is None else int(spans.keys.max(initial=-1)) + 1
            session = session._replace(stream=spanned + number)
        return [session._replace(turn=turn) for turn in range(turns)]

    def _streams(self, first: int, stop: int) -> list[int]:
        """Return what whole prompts without blocks go on with, by the row that it began with.

        One with too few tokens for all that was said before it begins anew. The last token of an answer may
        be missing: it has no KV, and an answer of none runs as one.
        """
        prompts, outputs = self.input_tokens[first:stop], self.output_tokens[first:stop]
        anew = np.append(True, prompts[1:] < prompts[:-1] + outputs[:-1] - 1)
        begun: list[int] = np.maximum.accumulate(np.where(anew, np.arange(first, stop), 0)).tolist()
        return begun
