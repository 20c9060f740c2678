"""What the cluster delivered per second, and per second and GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from servesim.cluster.deployment import Deployment
from servesim.results.rates import per_gpu, ratio
from servesim.results.records import Records
from servesim.results.window import Window

#: What each half of a disaggregated cluster is there to do.
ROLE_FIGURES = {
    "prefill": ("requests_per_s", "input_tokens_per_s"),
    "decode": ("requests_per_s", "output_tokens_per_s"),
}


class Volume(NamedTuple):
    """What was delivered: requests completed, tokens of prompts read, tokens emitted."""

    requests: int
    input_tokens: int
    output_tokens: int


def volume(records: Records, completed: NDArray[np.bool_]) -> Volume:
    """Return what the completed requests amount to, as ``vllm bench serve`` counts."""
    requests = records.request_table
    inputs, outputs = (requests.column(name)[completed] for name in ("input_tokens", "generated_tokens"))
    return Volume(int(completed.sum()), int(inputs.sum()), int(outputs.sum()))


def ended_in(window: Window, records: Records) -> NDArray[np.bool_]:
    """Say of each request whether its last token falls in the window."""
    requests = records.request_table
    return window.sees(requests.column("sent_s") + requests.column("e2e_s"))


def volume_in(window: Window, records: Records, ended: NDArray[np.bool_], further: int) -> Volume:
    """Return what was delivered within the window, whenever its requests were sent.

    Requests count that ``ended`` in it, a prompt when its first token falls in it, and each token by itself:
    first tokens, and the ``further`` ones that were emitted in the window.
    """
    requests = records.request_table
    begun = window.sees(requests.column("sent_s") + requests.column("ttft_s"))
    inputs = requests.column("input_tokens")[begun]
    return Volume(int(ended.sum()), int(inputs.sum()), further + int(begun.sum()))


def throughput(delivered: Volume, window: Window, deployments: Sequence[Deployment]) -> dict[str, Any]:
    """Return the rates, each also per GPU paid for; with two pools, also per GPU of the pool at work."""
    tokens = delivered.input_tokens + delivered.output_tokens
    rates = {
        "requests_per_s": ratio(delivered.requests, window.length_s),
        "input_tokens_per_s": ratio(delivered.input_tokens, window.length_s),
        "output_tokens_per_s": ratio(delivered.output_tokens, window.length_s),
        "total_tokens_per_s": ratio(tokens, window.length_s),
    }
    paid = sum(pool.gpus for pool in deployments)
    roles = {
        pool.role: per_gpu({name: rates[name] for name in ROLE_FIGURES[pool.role]}, pool.gpus)
        for pool in deployments
        if pool.role in ROLE_FIGURES
    }
    return {**rates, **per_gpu(rates, paid), "roles": roles or None}
