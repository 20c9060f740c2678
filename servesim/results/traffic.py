"""What was asked of the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from servesim.results.rates import ratio
from servesim.results.records import Records


def traffic(records: Records, held_due_s: Sequence[float] = ()) -> dict[str, Any]:
    """Return how many requests were due, at which rate, and mean tokens, whatever became of the requests.

    A request that was sent again counts once.

    The rate is of the gaps between the moments they were due at, one fewer than requests, whatever the client
    held back: ``held_due_s`` are those of requests that it had not sent when the run was cut. Tokens are of
    those sent, outputs as they are after a cap at ``max_model_len``.
    """
    requests = records.request_table
    first = requests.column("attempt") == 0
    due_s = np.append((requests.column("sent_s") - requests.column("client_queue_s"))[first], held_due_s)
    inputs, outputs = (int(requests.column(name)[first].sum()) for name in ("input_tokens", "output_tokens"))
    return {
        "requests": len(due_s),
        "offered_per_s": ratio(len(due_s) - 1, float(due_s.max() - due_s.min())) if len(due_s) else None,
        "input_tokens": ratio(inputs, int(first.sum())),
        "output_tokens": ratio(outputs, int(first.sum())),
    }
