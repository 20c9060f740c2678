"""The client of conversations: whoever sends a turn when the answer to the last one has ended."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from math import inf, nan

from servesim.cluster.client import PAUSE_REQUESTS
from servesim.cluster.listener import Listener, Server
from servesim.engine.clock import ARRIVAL, EARLY_S, Alarm, Clock
from servesim.streams import Streams
from servesim.workload.batch import MOST_REQUESTS
from servesim.workload.recorded import RecordedSession, RecordedSessions
from servesim.workload.request import Request
from servesim.workload.session import Session
from servesim.workload.sessions import Sessions


@dataclass
class Ends:
    """How sessions ended: all turns answered, no room for the next prompt, or a request that failed.

    ``durations_s`` and ``requests`` are of the first two, where anything was sent: seconds from the first
    sending to the end of the last answer, and the number of requests. ``open_s`` are seconds up to the last
    answer of those that had more to say when the sending ended, or the run. ``turns_given_up`` are turns of
    the failed ones for which there was room, and that were not sent. ``requests_meant`` is what a
    session that nothing ends early sends on average, and ``last_begun_s`` when the last of a limited number
    began; otherwise infinite.
    """

    requests_meant: float = nan
    last_begun_s: float = inf
    begun: int = 0
    completed: int = 0
    context_full: int = 0
    failed: int = 0
    turns_given_up: int = 0
    durations_s: array[float] = field(default_factory=lambda: array("d"))
    requests: array[int] = field(default_factory=lambda: array("q"))
    open_s: array[float] = field(default_factory=lambda: array("d"))

    @property
    def unfinished(self) -> int:
        """How many had more to say when the sending ended, or the run."""
        return self.begun - self.completed - self.context_full - self.failed


class Talk:
    """A session that is going on: since when, how many of its turns were sent, when the last was answered."""

    __slots__ = ("answered_s", "begun_s", "pause_s", "sent", "session")

    def __init__(self, session: Session | RecordedSession, begun_s: float, pause_s: float) -> None:
        self.session = session
        self.begun_s = self.answered_s = begun_s
        self.pause_s = pause_s
        self.sent = 0


class Conversations(Listener):
    """Begins sessions at their times, or for users who hold one after the other, and sends turn after turn.

    Requests are numbered as they are sent. A session ends with the answer to its last turn, before a prompt
    that would be too long, or with a request that is not completed. One whose first prompt is longer than
    ``max_context_tokens`` ends before it begins; one that the engine has no room for is sent, and dropped.

    Args:
        clock: event time.
        workload: the sessions, when they begin, and what ends the sending.
        streams: what they are drawn from.
        cluster: where the requests go.
        pause: told every thousand requests how many there have been.
        max_model_len: tokens that a prompt and its answer may have together.
        api_time_s: seconds from the sending to the arrival.
    """

    held_due_s: tuple[float, ...] = ()

    def __init__(
        self,
        clock: Clock,
        workload: Sessions | RecordedSessions,
        streams: Streams,
        cluster: Server,
        pause: Callable[[int], None],
        max_model_len: int,
        api_time_s: float = 0.0,
    ) -> None:
        super().__init__(clock, cluster, api_time_s)
        self.ends = Ends(workload.requests_per_session)
        self._workload = workload
        self._starts_s = workload.starts_s(streams)
        self._pauses_s = _pauses_s(workload, streams)
        self._pause = pause
        self._sent = 0
        self._most = inf if workload.most_requests is None else workload.most_requests
        self._until_s = inf if workload.duration_s is None else workload.duration_s
        self._context = inf if workload.max_context_tokens is None else workload.max_context_tokens
        self._longest = min(self._context, max_model_len - 1)
        # one turn more than can be sent tells how a session ends
        turns = min(self._most, self._longest) if workload.grows else self._most
        self._sessions = workload.conversations(streams, int(min(turns, MOST_REQUESTS)) + 1)
        self._open: dict[Talk, None] = {}
        self._asking: dict[Request, Talk] = {}
        self._next_s = next(self._starts_s, None)
        self._alarm = Alarm(self._begin_due)
        clock.set(self._alarm, clock.now, ARRIVAL)

    def _begin_due(self) -> None:
        """Begin all sessions whose time has come, then wait for the next, while anything may be sent."""
        while self._next_s is not None:
            seen_s = self._next_s - EARLY_S
            if seen_s > self._clock.now:
                self._clock.set(self._alarm, seen_s, ARRIVAL)
                return
            if not self._begin(self._next_s):
                return
            self._next_s = next(self._starts_s, None)

    def _begin(self, start_s: float) -> bool:
        """Begin the next session, if there is one and it may send; say whether it was begun."""
        session = next(self._sessions, None) if self._may_send(start_s) else None
        if session is None:
            return False
        self.ends.begun += 1
        if self.ends.begun == self._workload.sessions:
            self.ends.last_begun_s = start_s
        prompt, pause_s = session.prompt(0, 0), next(self._pauses_s)
        if prompt > self._context:
            self.ends.context_full += 1
            self._most -= 1  # its request counts as one of those to send, or sending might never end
            self._rest(start_s, pause_s)
            return True
        talk = Talk(session, start_s, pause_s)
        self._open[talk] = None
        self._ask(talk, start_s, prompt)
        return True

    def _may_send(self, sent_s: float) -> bool:
        """Say whether anything may be sent at a time: neither the number nor the duration is over."""
        return self._sent < self._most and sent_s < self._until_s

    def _ask(self, talk: Talk, sent_s: float, prompt: int) -> None:
        """Send the next turn, if anything may still be sent."""
        if not self._may_send(sent_s):
            return
        if self._sent % PAUSE_REQUESTS == 0:
            self._pause(self._sent)
        session, turn = talk.session, talk.sent
        request = Request(self._sent, sent_s, prompt, session.outputs[turn], session.origin_of(turn))
        self._sent += 1
        talk.sent += 1
        self._asking[request] = talk
        self._send(request, sent_s)

    def _answered(self, request: Request) -> None:
        """Let the next turn follow an answer, or end the session."""
        talk, ends, now = self._asking.pop(request), self.ends, self._clock.now
        session, turn, talk.answered_s = talk.session, talk.sent, now
        if request.generated < request.output_tokens:
            ends.failed += 1
            ends.turns_given_up += max(self._turns(session) - turn, 0)
        elif turn == session.turns:
            ends.completed += 1
            self._note(talk, now)
        elif (prompt := session.prompt(turn, request.input_tokens + request.output_tokens)) > self._longest:
            ends.context_full += 1
            self._note(talk, now)
        else:
            sent_s = session.sent_s(turn, talk.begun_s, now)
            self._later(sent_s, partial(self._ask, talk, sent_s, prompt))
            return
        del self._open[talk]
        self._rest(now, talk.pause_s)

    def _rest(self, now: float, pause_s: float) -> None:
        """Let the user of a session that has ended begin the next one, where there are users."""
        if self._workload.users:
            start_s = now + pause_s
            self._later(start_s, partial(self._begin, start_s))

    def _later(self, sent_s: float, send: Callable[[], object]) -> None:
        """Let something be sent, which is seen as early as any arrival, but after now."""
        self._clock.call_at(max(sent_s - EARLY_S, self._clock.now + EARLY_S), send)

    def _note(self, talk: Talk, now: float) -> None:
        """Note how long a session took, and how many requests."""
        self.ends.durations_s.append(now - talk.begun_s)
        self.ends.requests.append(talk.sent)

    def halt(self, now: float) -> None:
        """Cut the run: whatever has been sent by now will not arrive, and no session goes on."""
        super().halt(now)
        self.ends.open_s.extend(talk.answered_s - talk.begun_s for talk in self._open)

    def remaining(self) -> int:
        """Count the requests that are yet to be sent, of as many as were asked for.

        Where the number of sessions ends the sending, those of sessions that have not ended, as far as there
        is room for their prompts. 0 where a duration ends it, or where nobody said how many.
        """
        left, workload = self._most - self._sent, self._workload
        if not workload.counted or not left:
            return 0
        if workload.sessions is not None:
            going_on = sum(self._turns(talk.session) - talk.sent for talk in self._open)
            left = min(left, going_on + sum(map(self._turns, self._sessions)))
        return int(left)

    def _turns(self, session: Session | RecordedSession) -> int:
        """Return how many turns of a session there is room for."""
        return session.turns_within(self._context, self._longest)


def _pauses_s(workload: Sessions | RecordedSessions, streams: Streams) -> Iterator[float]:
    """Yield the seconds that a user rests after each session; nobody is asked to where there are no users."""
    users = workload.users
    return users.thoughts_s(streams.stream("think times")) if users else repeat(0.0)
