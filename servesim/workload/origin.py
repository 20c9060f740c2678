"""Where a request comes from: its conversation, its tenant, and what its prompt has in common with others."""

from __future__ import annotations

from math import inf
from typing import NamedTuple


class Origin(NamedTuple):
    """What is known of a request beside its moment and its lengths.

    The prompt is described as a chain of spans. ``prefix`` names them from the first token on, each as
    (key, end): the tokens from the end of the span before it up to ``end`` are those that ``key`` stands
    for, *behind all that precedes them*. So two prompts begin alike exactly as far as their chains have the
    same keys, and within the first key that differs in nothing but its end up to the nearer of the two. What
    the prompt has beyond its last span, and the answer that follows it, belong to ``stream``: a later turn of
    the conversation that names the same stream finds both; where it is None nobody else ever asks for them.

    Attributes:
        session: number of the conversation; -1: none.
        turn: place of the request in its conversation, from 0.
        tenant: number of who it is served for.
        priority: its class; a smaller one is served first, as in vLLM.
        attempt: how often the client had sent it before.
        prefix: the spans, (key, end in tokens), ends ascending and none beyond the prompt.
        stream: the key of what follows the last span, answer included.
        slack_s: seconds from its arrival in which its first token is wanted.
        weight: what is due to its tenant where service is shared fairly, relative to the others.

    """

    session: int = -1
    turn: int = 0
    tenant: int = 0
    priority: int = 0
    attempt: int = 0
    prefix: tuple[tuple[int, int], ...] = ()
    stream: int | None = None
    slack_s: float = inf
    weight: float = 1.0


#: A request of which nothing is known.
ANYWHERE = Origin()
