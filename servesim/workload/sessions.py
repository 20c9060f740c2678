"""Conversations: turns that follow each other, each prompt with all that was said before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, count, islice
from math import inf
from statistics import NormalDist
from typing import ClassVar, Literal

import numpy as np

from servesim.check import MOST_S, Problem, quantity
from servesim.streams import Streams
from servesim.workload.arrivals import Burst, ClosedLoop, moments
from servesim.workload.arriving import Arriving
from servesim.workload.batch import BATCH_ROWS, MOST_REQUESTS, Batch, BoolArray, FloatArray, IntArray
from servesim.workload.lengths import MOST_TOKENS, Lengths
from servesim.workload.normal import normal_cdf
from servesim.workload.notes import Notes
from servesim.workload.origin import ANYWHERE, Origin
from servesim.workload.session import Session
from servesim.workload.session_draws import CHUNK_SESSIONS, INPUT, OUTPUT, WAIT, Drawn, draw_chunk
from servesim.workload.tenant import Tenants, draw_tenants, tenant_origins
from servesim.workload.tools import Tools
from servesim.workload.turns import Turns
from servesim.workload.vllm_bench import VllmBench

#: Requests of conversations that name no limit: so many that most of them are sent at the full rate.
DEFAULT_REQUESTS = 10_000
#: Turns of sessions from which on no more sessions are made at once: memory stays flat where they are long.
_TURNS_TOGETHER = 16_384
#: System prompts, at the most.
MOST_PROMPTS = 100_000


@dataclass(frozen=True)
class Sessions(Arriving):
    """Conversations of several turns that arrive as a process, or are held by users in a closed loop.

    Each prompt is a system prompt, all earlier inputs and answers, and new input. The system prompt has
    ``system_prompt_tokens`` and is one of ``system_prompts``, number k being chosen in proportion to
    (k + 1)^-``system_prompt_skew`` (Zipf's law; 0: all alike). The next turn is sent ``think_time_s`` after
    the answer has ended, or when a tool has its result. A conversation whose next prompt would have more than
    ``max_context_tokens``, or leave no room for an answer in the engine, ends early.

    The rate of the arrivals is that of sessions. ``sessions`` ends their beginning; ``requests`` and
    ``duration_s`` end all sending; without any limit 10,000 requests are sent.

    Session i is the same in every configuration and at every rate, and goes on as it began where turns are
    added (:func:`draw_chunk`).
    """

    lengths: Lengths
    turns: Turns
    tools: Tools
    system_prompt_tokens: int = quantity("tokens", at_least=0, at_most=MOST_TOKENS, default=0)
    system_prompts: int = quantity("system prompts", at_least=1, at_most=MOST_PROMPTS, default=1)
    system_prompt_skew: float = quantity("exponent", at_least=0, at_most=100, default=0.0)
    think_time_s: float = quantity("s", at_least=0, at_most=MOST_S, default=0.0)
    think_time: Literal["constant", "exponential"] = quantity(default="exponential")
    max_context_tokens: int | None = quantity("tokens", at_least=1, at_most=MOST_TOKENS, default=None)
    sessions: int | None = quantity("sessions", at_least=1, at_most=MOST_REQUESTS, default=None)
    requests: int | None = quantity("requests", at_least=1, at_most=MOST_REQUESTS, default=None)
    duration_s: float | None = quantity("s", above=0, at_most=MOST_S, default=None)
    tenants: Tenants = quantity("tenants by name", factory=dict)

    shares_prefixes: ClassVar[bool] = True
    grows: ClassVar[bool] = True
    notes: ClassVar[Notes | None] = None
    hints: ClassVar[Mapping[str, str]] = {
        "rate_rps": "set workload.arrivals.rate_rps, the sessions that begin in a second",
        "path": "choose workload=trace",
        "rate_scale": "set workload.arrivals.rate_rps, the sessions that begin in a second",
        "tool_calls": "set workload.tools.calls",
        "tool_delay_s": "set workload.tools.delay_s",
    }

    @property
    def most_requests(self) -> int | None:
        """Return how many requests are sent at the most; None where another limit ends the sending."""
        if self.requests is None and self.sessions is None and self.duration_s is None:
            return DEFAULT_REQUESTS
        return self.requests

    @property
    def counted(self) -> bool:
        """Return whether somebody has said how many requests or sessions there are, whenever answers come."""
        return self.duration_s is None and (self.requests or self.sessions) is not None

    @property
    def requests_per_session(self) -> float:
        """Return the mean number of requests of a session that nothing ends early."""
        return self.turns.mean * (1 + self.tools.calls)

    @cached_property
    def prompt_shares(self) -> FloatArray:
        """The share of the sessions that each system prompt has: Zipf's law."""
        weights = np.arange(1, self.system_prompts + 1, dtype=np.float64) ** -self.system_prompt_skew
        shares: FloatArray = weights / weights.sum()
        return shares

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong between fields."""
        if isinstance(self.arrivals, VllmBench):
            message = "are for a number of requests; choose workload/arrivals=poisson or gamma for sessions"
            yield Problem("arrivals", "vllm_bench", message)
            return
        if isinstance(self.arrivals, Burst) and self.sessions is None:
            yield Problem("sessions", None, "must be given: a burst begins all its sessions at once")
        if self.max_context_tokens is not None and self.system_prompt_tokens >= self.max_context_tokens:
            message = f"must be below max_context_tokens, {self.max_context_tokens} (tokens)"
            yield Problem("system_prompt_tokens", self.system_prompt_tokens, message)
        limits = [limit for limit in (self.sessions, self.most_requests) if limit is not None]
        if not isinstance(self.arrivals, ClosedLoop) and self.duration_s is None and limits:
            last_s = float(self.arrivals.times(np.array([float(min(limits))]))[0])
            if last_s > MOST_S:
                message = f"{min(limits):,} sessions take more than {MOST_S:g} s to begin; set a higher rate"
                yield Problem("arrivals", None, message)

    def starts_s(self, streams: Streams) -> Iterator[float]:
        """Yield when sessions begin (seconds), without end, or when each user of a closed loop does."""
        assert not isinstance(self.arrivals, VllmBench)
        if isinstance(self.arrivals, ClosedLoop):
            yield from map(self.arrivals.start_s, range(self.arrivals.concurrency))
            return
        for some in moments(self.arrivals, streams.stream("arrivals"), BATCH_ROWS):
            yield from some.tolist()

    def conversations(self, streams: Streams, most_turns: int = MOST_REQUESTS) -> Iterator[Session]:
        """Yield the sessions in order of their numbers, up to their limit, of each at most ``most_turns``."""
        draw = draw_tenants(self.tenants, streams) if self.tenants else None
        known = tenant_origins(self.tenants) if self.tenants else [ANYWHERE]
        for chunk in count():
            first = chunk * CHUNK_SESSIONS
            left = CHUNK_SESSIONS if self.sessions is None else min(self.sessions - first, CHUNK_SESSIONS)
            if left <= 0:
                return
            places = draw(left) if draw else [0] * left
            drawn = islice(draw_chunk(streams, chunk, self.turns, self._call_below, most_turns), left)
            for some in _by_turns(drawn):
                after = first + len(some)
                origins = [known[place] for place in places[: len(some)]]
                yield from self._sessions(range(first, after), some, origins)
                first, places = after, places[len(some) :]

    def batches(self, streams: Streams) -> Iterator[Batch]:
        """Yield the first request of each session, as if all began at 0; later ones wait for answers."""
        sessions = self.conversations(streams, most_turns=1)
        while some := list(islice(sessions, CHUNK_SESSIONS)):
            inputs = np.array([each.system_tokens + each.inputs[0] for each in some])
            outputs = np.array([each.outputs[0] for each in some])
            yield Batch(np.zeros(len(some)), inputs, outputs, [each.origin for each in some])

    @cached_property
    def _call_below(self) -> float:
        """The standard normal below which a tool is called."""
        return NormalDist().inv_cdf(self.tools.probability) if self.tools.calls else -inf

    def _sessions(
        self, numbers: Iterable[int], drawn: list[Drawn], origins: list[Origin]
    ) -> Iterator[Session]:
        """Yield sessions from what was drawn for each."""
        normals = np.concatenate([each.normals for each in drawn])
        results = np.concatenate([each.results for each in drawn])
        arrays = *self._tokens(normals, results), self._waits_s(normals, results)
        columns = [column.tolist() for column in arrays]
        prompts = self._prompts([each.share for each in drawn])
        stops = list(accumulate(len(each.results) for each in drawn))
        for number, origin, prompt, first, stop in zip(
            numbers, origins, prompts, [0, *stops], stops, strict=False
        ):
            inputs, outputs, waits_s = (column[first:stop] for column in columns)
            own = self._origin(number, prompt, origin)
            yield Session(own, self.system_prompt_tokens, inputs, outputs, waits_s)

    def _prompts(self, shares: list[float]) -> list[int]:
        """Return the system prompt that each share of the sessions, from 0 up to 1, falls to."""
        ends = np.cumsum(self.prompt_shares)
        prompts: list[int] = np.searchsorted(ends, shares, side="right").clip(max=len(ends) - 1).tolist()
        return prompts

    def _origin(self, number: int, prompt: int, tenant: Origin) -> Origin:
        """Return where the first request of a session comes from; system prompts have the first keys."""
        spans = ((prompt, self.system_prompt_tokens),) if self.system_prompt_tokens else ()
        key = self.system_prompts + number
        return tenant._replace(session=number, turn=0, prefix=spans, stream=key)

    def _tokens(self, normals: FloatArray, results: BoolArray) -> tuple[IntArray, IntArray]:
        """Return the new tokens and the tokens of the answer of each turn."""
        pairs = normals[:, [INPUT, OUTPUT]]
        inputs, outputs = self.lengths.tokens(pairs)
        if results.any():
            inputs, outputs = inputs.copy(), outputs.copy()
            inputs[results], outputs[results] = self.tools.lengths.tokens(pairs[results])
        return inputs, outputs

    def _waits_s(self, normals: FloatArray, results: BoolArray) -> FloatArray:
        """Return the seconds before each turn: of thinking, or of a tool at work."""
        units = -np.log(normal_cdf(normals[:, WAIT]))  # exponential, of mean 1
        thought_s = self.think_time_s * (units if self.think_time == "exponential" else 1.0)
        worked_s = self.tools.delay_s * (units if self.tools.delay == "exponential" else 1.0)
        waits_s: FloatArray = np.where(results, worked_s, thought_s)
        return waits_s


def _by_turns(drawn: Iterable[Drawn]) -> Iterator[list[Drawn]]:
    """Yield what was drawn for some sessions at a time: many short ones together, a long one alone."""
    some: list[Drawn] = []
    turns = 0
    for each in drawn:
        some.append(each)
        turns += len(each.results)
        if turns >= _TURNS_TOGETHER:
            yield some
            some, turns = [], 0
    if some:
        yield some
