"""The oracle's clusters: requests, a router, replicas and, between two pools, transfers of fixed latency."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf, isnan
from typing import Any, Literal

from tests.costs import AffineStepTime
from tests.oracle.client import EARLY_S, OPEN_LOOP, TIE_S, Client, Sending, Sent
from tests.oracle.continuous import Continuous
from tests.oracle.disaggregated import Decode, Prefill
from tests.oracle.job import Job
from tests.oracle.static import Static
from tests.oracle.step import Step

Rule = Literal["round_robin", "least_outstanding"]


@dataclass
class Run:
    """What one simulation has written down."""

    taken: list[Job] = field(default_factory=list)
    """All requests that were not dropped, in the order of sending."""
    finished: list[Job] = field(default_factory=list)
    """In the order of finishing."""
    dropped: list[Job] = field(default_factory=list)
    hung_up: list[Job] = field(default_factory=list)
    """In the order of being given up."""
    on_the_way: list[Job] = field(default_factory=list)
    """Sent, and not arrived by the horizon."""
    steps: list[Step] = field(default_factory=list)
    """Replica by replica, each replica's in order; a step that the horizon has cut is left out."""
    free: list[int] = field(default_factory=list)
    """Blocks free at the end, by replica."""
    swaps: list[tuple[int, int]] = field(default_factory=list)
    """Blocks copied to the host and back, of each request that went there or came from there."""
    ties: int = 0
    """How often two replicas' moments coincided by chance, so that rounding decides which comes first."""


class Cluster:
    """Delivers messages to replicas and lets them act at their boundaries, in the order of time."""

    def __init__(self) -> None:
        self.messages: list[tuple[float, int, Callable[[], None]]] = []
        self.sent = 0
        self.run = Run()
        self.client: Client

    def at(self, time_s: float, act: Callable[[], None]) -> None:
        """Let something happen at a time; of two at one time, the first asked for comes first."""
        self.messages.append((time_s, self.sent, act))
        self.sent += 1

    def simulate(self, replicas: Sequence[Continuous | Static], horizon_s: float = inf) -> Run:
        """Let everything happen up to the horizon; at one instant messages come before boundaries."""
        while True:
            message = min(self.messages, default=None, key=lambda message: message[:2])
            replica = min(replicas, key=lambda replica: replica.boundary_s)
            next_s = min(message[0], replica.boundary_s) if message else replica.boundary_s
            if next_s > horizon_s or next_s == inf:
                break
            if message and message[0] == next_s:
                self.messages.remove(message)
                message[2]()
            else:
                replica.boundary(next_s)
        self.run.ties += self.client.ties
        self.run.on_the_way = self.client.on_the_way
        for replica in replicas:
            self.run.steps += replica.steps[:-1] if replica.computing else replica.steps
            self.run.free.append(replica.free)
            self.run.swaps += replica.swaps if isinstance(replica, Continuous) else []
        return self.run

    def send(
        self,
        requests: Sequence[Sent],
        sending: Sending,
        max_model_len: int,
        choose: Callable[[], Any],
        give_up: Callable[[Job, float], None],
    ) -> None:
        """Send the requests to the replicas that ``choose`` names; prompts that are too long are dropped.

        Let ``give_up`` take those out whose clients have waited long enough.
        """

        def deliver(job: Job, now: float) -> None:
            if job.input_tokens >= max_model_len:
                self.run.dropped.append(job)
                self.client.answered(job, now)
                return
            self.run.taken.append(job)
            job.output_tokens = min(job.output_tokens, max_model_len - job.input_tokens)
            for limit_s, is_met in ((sending.timeout_s, ended), (sending.ttft_timeout_s, begun)):
                due_s = job.sent_s + limit_s
                if limit_s < inf:
                    act = partial(time_out, job, due_s, is_met)
                    self.at(due_s + EARLY_S, act)
            choose().arrive(job, max(now, job.arrived_s))

        def time_out(job: Job, due_s: float, is_met: Callable[[Job], bool]) -> None:
            if not is_met(job):
                job.hung_up_s = due_s
                self.run.hung_up.append(job)
                give_up(job, due_s + EARLY_S)
                self.client.answered(job, due_s + EARLY_S)

        self.client = Client(sending, self.at, deliver)
        self.client.start(requests)

    def note_tie(self, replica: Continuous, now: float) -> None:
        """Note when a message between replicas finds it begin or end a step at that very instant."""
        if replica.computing:
            begun_s, end_s = replica.steps[-1].start_s, replica.boundary_s
            self.run.ties += min(abs(begun_s - now), abs(end_s - now)) < TIE_S


def ended(job: Job) -> bool:
    """Return whether nobody waits for a request any more."""
    return job.given_up or not isnan(job.finished_s)


def begun(job: Job) -> bool:
    """Return whether nobody waits for the first token of a request any more."""
    return ended(job) or job.generated > 0


class Router:
    """Chooses among the replicas of one pool: in turn, or the one with the fewest unfinished requests."""

    def __init__(self, replicas: Sequence[Any], rule: Rule) -> None:
        self.replicas = replicas
        self.rule = rule
        self.routed = 0
        self.outstanding = [0] * len(replicas)

    def choose(self) -> Any:
        """Return the replica of the next request; of equals, the first."""
        if self.rule == "round_robin":
            place = self.routed % len(self.replicas)
        else:
            place = self.outstanding.index(min(self.outstanding))
        self.routed += 1
        self.outstanding[place] += 1
        return self.replicas[place]

    def left(self, index: int) -> None:
        """Note that a request has left the replica with this global index."""
        self.outstanding[index - self.replicas[0].index] -= 1


def serve(
    requests: Sequence[Sent],
    kind: type[Continuous] | type[Static],
    step_time: AffineStepTime,
    *,
    max_model_len: int,
    replicas: int = 1,
    rule: Rule = "round_robin",
    sending: Sending = OPEN_LOOP,
    horizon_s: float = inf,
    **limits: Any,
) -> Run:
    """Serve requests with one pool of equal replicas."""
    cluster = Cluster()

    def on_finish(job: Job) -> None:
        cluster.run.finished.append(job)
        router.left(job.replica)
        cluster.client.answered(job, job.finished_s)

    pool = [kind(index, step_time, on_finish, **limits) for index in range(replicas)]
    router = Router(pool, rule)

    def give_up(job: Job, now: float) -> None:
        cluster.note_tie(pool[job.replica], now)
        router.left(job.replica)
        pool[job.replica].give_up(job, now)

    cluster.send(requests, sending, max_model_len, router.choose, give_up)
    return cluster.simulate(pool, horizon_s)


def serve_disaggregated(
    requests: Sequence[Sent],
    prefill_step_time: AffineStepTime,
    decode_step_time: AffineStepTime,
    *,
    max_model_len: int,
    transfer_s: float,
    first_token: Literal["prefill", "decode"],
    prefill_blocks: int,
    decode_blocks: int,
    prefill_replicas: int = 1,
    decode_replicas: int = 1,
    rule: Rule = "round_robin",
    sending: Sending = OPEN_LOOP,
    horizon_s: float = inf,
    **limits: Any,
) -> Run:
    """Serve requests with a prefill pool and a decode pool; each transfer takes ``transfer_s``."""
    cluster = Cluster()
    prefilled: list[tuple[float, int]] = []
    landed: list[tuple[float, int]] = []

    def on_finish(job: Job) -> None:
        cluster.run.finished.append(job)
        if job.replica == -1:
            prefill_router.left(job.prefill_replica)
        else:
            decode_router.left(job.replica)
        cluster.client.answered(job, job.finished_s)

    def hand_over(job: Job, now: float) -> None:
        source = job.prefill_replica
        cluster.run.ties += any(other != source and now - then < TIE_S for then, other in prefilled)
        prefilled.append((now, source))
        replica = decode_router.choose()
        job.replica = replica.index
        cluster.at(now + EARLY_S, lambda: offer(job, replica, now + EARLY_S))

    def offer(job: Job, replica: Decode, now: float) -> None:
        cluster.note_tie(replica, now)
        if job.given_up:
            release(job, now)
        else:
            replica.arrive(job, now)

    def release(job: Job, now: float) -> None:
        source = prefill_pool[job.prefill_replica]
        cluster.note_tie(source, now)
        source.release(job, now)
        prefill_router.left(source.index)

    def give_up(job: Job, now: float) -> None:
        if job.replica == -1:
            cluster.note_tie(prefill_pool[job.prefill_replica], now)
            prefill_router.left(job.prefill_replica)
            prefill_pool[job.prefill_replica].give_up(job, now)
            return
        replica = decode_pool[job.replica - prefill_replicas]
        cluster.note_tie(replica, now)
        if job in replica.incoming:
            release(job, now)
        decode_router.left(job.replica)
        replica.give_up(job, now)

    def start_transfer(job: Job, now: float) -> None:
        job.decode_queue_s += now - job.prefilled_s
        cluster.at(now + transfer_s, lambda: end_transfer(job, now + transfer_s))

    def end_transfer(job: Job, now: float) -> None:
        if sending.origins:  # blocks that others can find leave in an order that matters
            cluster.run.ties += any(other != job.replica and now - then < TIE_S for then, other in landed)
            landed.append((now, job.replica))
        if not job.given_up:
            job.transfer_s = transfer_s
            job.landed_s = now
        release(job, now)
        cluster.at(now + EARLY_S, lambda: land(job, now + EARLY_S))

    def land(job: Job, now: float) -> None:
        replica = decode_pool[job.replica - prefill_replicas]
        cluster.note_tie(replica, now)
        if job.given_up:
            replica.decline(job, now)
        else:
            replica.land(job, now)

    prefill_pool = [
        Prefill(
            index,
            prefill_step_time,
            on_finish,
            first_token=first_token,
            hand_over=hand_over,
            kv_blocks=prefill_blocks,
            **limits,
        )
        for index in range(prefill_replicas)
    ]
    decode_pool = [
        Decode(
            prefill_replicas + index,
            decode_step_time,
            on_finish,
            start_transfer=start_transfer,
            kv_blocks=decode_blocks,
            **limits,
        )
        for index in range(decode_replicas)
    ]
    prefill_router, decode_router = Router(prefill_pool, rule), Router(decode_pool, rule)
    cluster.send(requests, sending, max_model_len, prefill_router.choose, give_up)
    return cluster.simulate([*prefill_pool, *decode_pool], horizon_s)
