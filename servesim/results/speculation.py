"""What speculative decoding came to: tokens drafted, accepted, and emitted per step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from servesim.cluster.deployment import Deployment
from servesim.component import kind_of
from servesim.results.columns import pools_of
from servesim.results.gaps import steps_ended
from servesim.results.rates import ratio
from servesim.results.records import Records
from servesim.results.window import Window

_COLUMNS = ("replica", "start_s", "first_step_s", "increment_s", "steps", "decodes", "emitted_tokens")


def speculation(records: Records, deployments: Sequence[Deployment], window: Window) -> dict[str, Any] | None:
    """Return drafts, drafted and accepted tokens of the steps that ended in the window; None without drafts.

    ``mean_accepted_length`` is the tokens that a sequence got in a step, those beyond its answer left out;
    ``expected_length`` what the rates say of all. Accepted are all tokens but one of each draft.
    """
    pool = deployments[-1]
    if pool.speculation is None:
        return None
    drafts = emitted = 0.0
    for replica, start_s, first_s, increment_s, steps, decodes, each in records.step_table.groups(*_COLUMNS):
        begin, end = (steps_ended(start_s, first_s, increment_s, steps, t) for t in window)
        for _, rows in pools_of(replica, [pool]):
            count = (end - begin)[rows]
            drafts += float((count * decodes[rows]).sum())
            emitted += float((count * each[rows]).sum())
    drafted = drafts * pool.speculation.num_speculative_tokens
    return {
        "kind": kind_of(pool.speculation),
        "num_speculative_tokens": pool.speculation.num_speculative_tokens,
        "rates": pool.speculation.rates,
        "expected_length": pool.speculation.mean_tokens,
        "mean_accepted_length": ratio(emitted, drafts),
        "drafts": round(drafts),
        "draft_tokens": round(drafted),
        "accepted_tokens": round(emitted - drafts),
        "accepted_share": ratio(emitted - drafts, drafted),
    }
