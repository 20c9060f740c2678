"""What was asked of the cluster."""

from __future__ import annotations

from typing import Any

from servesim.results.rates import ratio
from servesim.results.records import Records


def traffic(records: Records) -> dict[str, Any]:
    """Return how many requests were sent, at which rate, and their mean tokens, whatever became of them.

    The rate is of the gaps between the moments they were due at, whatever the client held back: one fewer
    than requests. Outputs count as they are after
    a cap at ``max_model_len``.
    """
    requests = records.request_table
    due_s, count = requests.column("sent_s") - requests.column("client_queue_s"), len(requests)
    inputs, outputs = (int(requests.column(name).sum()) for name in ("input_tokens", "output_tokens"))
    return {
        "requests": count,
        "offered_per_s": ratio(count - 1, float(due_s.max() - due_s.min())) if count else None,
        "input_tokens": ratio(inputs, count),
        "output_tokens": ratio(outputs, count),
    }
