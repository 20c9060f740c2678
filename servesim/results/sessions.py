"""How conversations went: how they ended, how long they took, and what later turns found in the cache."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from servesim.cluster.conversations import Ends
from servesim.results.rates import ratio
from servesim.results.records import Records
from servesim.results.statistics import describe


def sessions(records: Records, ends: Ends) -> dict[str, Any]:
    """Return the ends of all sessions, and what is to say of those with an end of their own.

    These have completed, or had no room for the next prompt: requests of each, and seconds from the first
    sending to the end of the last answer, thinking and tools included. ``turns_given_up`` were never sent,
    since a request before them was dropped or timed out. ``requests_meant`` are those of a
    session that nothing ends early, on average; sessions were begun for ``begun_for_s``, up to the end of the
    sending or to the last of a limited number.
    """
    turn, sent_s = (records.request_table.column(name) for name in ("turn", "sent_s"))
    last_s = min(ends.last_begun_s, float(sent_s.max(initial=-inf)))
    return {
        "requests_meant": ends.requests_meant,
        "begun_for_s": last_s - float(sent_s.min(initial=last_s)) if len(sent_s) else nan,
        "begun": ends.begun,
        "completed": ends.completed,
        "context_full": ends.context_full,
        "failed": ends.failed,
        "turns_given_up": ends.turns_given_up,
        "unfinished": ends.unfinished,
        "requests": describe(np.array(ends.requests, dtype=np.float64)),
        "duration_s": describe(np.array(ends.durations_s, dtype=np.float64)),
        "first_turns": _of_turns(records, turn == 0),
        "later_turns": _of_turns(records, turn > 0),
    }


def percentile_of_stays(ends: Ends, percent: float) -> float:
    """Return the seconds that so many per cent of the sessions do not pass; infinite where none can tell.

    Long sessions are cut by the end of the sending more often than short ones, so that those that ended are
    too short a sample. The share that lasts longer than t is estimated as the product over the ends t_i <= t
    of 1 - 1/n_i, n_i sessions being known to last for t_i at least (Kaplan and Meier, "Nonparametric
    estimation from incomplete observations", JASA 53, 1958).
    """
    ended_s = np.sort(np.array(ends.durations_s, dtype=np.float64))
    open_s = np.sort(np.array(ends.open_s, dtype=np.float64))
    lasting = np.arange(len(ended_s), 0, -1) + len(open_s) - np.searchsorted(open_s, ended_s)
    reached = np.flatnonzero(np.cumprod(1 - 1 / lasting) <= 1 - percent / 100 + 1e-12)
    return float(ended_s[reached[0]]) if len(reached) else inf


def _of_turns(records: Records, chosen: NDArray[np.bool_]) -> dict[str, float]:
    """Return the numbers of some requests, their mean tokens when first scheduled, and mean TTFT.

    TTFT is of those that completed, as everywhere.
    """
    requests = records.request_table
    names = ("input_tokens", "cached_tokens", "recovered_tokens")
    inputs, cached, recovered = (int(requests.column(name)[chosen].sum()) for name in names)
    ttft_s = requests.column("ttft_s")[chosen & ~np.isnan(requests.column("e2e_s"))]
    return {
        "requests": int(chosen.sum()),
        "completed": len(ttft_s),
        "input_tokens": ratio(inputs, int(chosen.sum())),
        "cached_tokens": ratio(cached - recovered, int(chosen.sum())),
        "ttft_s": ratio(float(ttft_s.sum()), len(ttft_s)),
    }
