"""Random origins: what the prompts of a case have in common."""

from __future__ import annotations

from random import Random

from servesim.workload.origin import Origin
from tests.oracle.client import Sent


def draw_origins(random: Random, requests: tuple[Sent, ...]) -> tuple[Origin, ...]:
    """Draw what prompts have in common: system prompts and conversations, or blocks of a trace."""
    origins = _conversations if random.random() < 0.6 else _branches
    return origins(random, [input_tokens for _, input_tokens, _ in requests])


def _conversations(random: Random, inputs: list[int]) -> tuple[Origin, ...]:
    """Draw requests of a few conversations, all of which begin with one of two system prompts."""
    longest = max(inputs)
    systems = [random.choice((0, longest // 3, longest // 2)) for _ in range(2)]
    origins = []
    for input_tokens in inputs:
        system, session = random.randrange(2), random.randrange(random.choice((1, 3, 100)))
        end = min(systems[system], input_tokens)
        stream = random.choice((True, True, False)) and end == systems[system]
        prefix = ((system, end),) if end else ()
        origins.append(Origin(session, prefix=prefix, stream=2 + 2 * session + system if stream else None))
    return tuple(origins)


def _branches(random: Random, inputs: list[int]) -> tuple[Origin, ...]:
    """Draw prompts of blocks of a few tokens, each block one of two that may follow those before it."""
    block_tokens = random.choice((1, 4, 24, 64))
    origins = []
    for input_tokens in inputs:
        key, prefix = 1, []
        for end in range(block_tokens, input_tokens + block_tokens, block_tokens):
            key = 2 * key + (random.random() < 0.2)
            last = end > input_tokens
            prefix.append((-key if last else key, min(end, input_tokens)))
        origins.append(Origin(prefix=tuple(prefix)))
    return tuple(origins)


def of_few_lengths(random: Random, requests: tuple[Sent, ...]) -> tuple[Sent, ...]:
    """Return the requests with prompts of few lengths, so that one often is the beginning of another."""
    lengths = [input_tokens for _, input_tokens, _ in requests]
    few = random.sample(lengths, min(2, len(lengths)))
    return tuple((sent_s, random.choice(few), outputs) for sent_s, _, outputs in requests)
