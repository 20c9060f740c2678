"""The steady state of a closed loop in closed form: no simulation, for as long as all KV fits."""

from __future__ import annotations

from typing import NamedTuple

from servesim.cost.speculation import Speculation
from servesim.cost.step_time import StepTime


class Steady(NamedTuple):
    """A replica that serves ``concurrency`` equal requests at a time, each followed by the next at once.

    ``decodes`` is the mean number of decoding sequences in a step, ``context`` their total, ``decode_s`` the
    time of a step of these decodes alone, ``prefill_s`` what the prefill of one prompt adds to steps,
    ``prefills_per_step`` how many prompts of the others fall on a step, ``tpot_s`` the mean time per output
    token. Times are in seconds.
    """

    decodes: float
    context: float
    decode_s: float
    prefill_s: float
    prefills_per_step: float
    tpot_s: float


def steady(
    step_time: StepTime,
    *,
    concurrency: int,
    input_tokens: float,
    output_tokens: float,
    max_num_batched_tokens: int,
    output_variance: float = 0.0,
    speculation: Speculation | None = None,
) -> Steady:
    """Return the steady state of a closed loop of requests whose KV fits, of one length or of these means.

    A request is k = prompt / token budget steps in prefill, rounded up, and output - 1 steps in decode;
    requests are spread evenly over this cycle. So of C requests C (output - 1) / (output - 1 + k) decode in
    a step, at a mean KV of prompt + output / 2 tokens, and (C - 1) / (output - 1 + k) prompts of the others
    fall on each step of a decode:

        TPOT = decode step + prompts of the others per step x what a prompt adds to its steps

    Where outputs vary, a step meets the longer ones more often: output / 2 becomes E[output^2] / 2 E[output].
    With ``speculation`` output - 1 becomes the steps of so many tokens, and TPOT is that share of a step.
    """
    mean, queries = (speculation.mean_tokens, speculation.queries) if speculation else (1.0, 1)
    further = max((output_tokens - 1) / mean, 1.0)
    chunks = prefill_chunks(round(input_tokens), max_num_batched_tokens - (concurrency - 1) * queries)
    cycle = further + len(chunks)
    decodes = concurrency * further / cycle
    sequences = max(round(decodes), 1)
    length = input_tokens + (output_tokens + output_variance / output_tokens) / 2
    context = round(sequences * length)
    decode_s = step_time.mixed(sequences, context, [])
    beside = max(sequences - 1, 1)
    read = round(beside * length)
    alone_s = step_time.mixed(beside, read, [])
    prefill_s = sum(step_time.mixed(beside, read, [chunk]) - alone_s for chunk in chunks)
    per_step = (concurrency - 1) / cycle
    tpot_s = (decode_s + per_step * prefill_s) / mean
    return Steady(decodes, decodes * length, decode_s, prefill_s, per_step, tpot_s)


def prefill_chunks(prompt: int, budget: int) -> list[tuple[int, int]]:
    """Return the chunks of (new, cached) tokens that a prompt is computed in, ``budget`` tokens a step."""
    size = max(budget, 1)
    return [(min(size, prompt - done), done) for done in range(0, prompt, size)]
