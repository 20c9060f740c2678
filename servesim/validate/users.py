"""How the users of a closed loop began and thought, as the recorded times of sending show it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from servesim.validate.measured import Floats, Measured

#: A pause between an answer and the next request is one of a user, not the client's own, from this share of
#: the median E2E on, and from so many seconds; so far may beginnings lie from an even ramp, too.
SHARE, LEAST_S = 0.01, 0.005


def as_they_began(run: Measured) -> Measured:
    """Return a run of users with how its times say that they began, where that was not at once.

    Users who began evenly and did not think are replayed so. Any others, who began otherwise or thought, are
    no users that a replay could have: their requests are sent at their times.
    """
    why = departs(run) if run.of_users else ""
    if not why:
        return run
    starts_s, pauses_s = _began(run)
    users = len(starts_s)
    ramp_up_s = users / max(users - 1, 1) * float(starts_s[-1] - starts_s[0])
    even_s = starts_s[0] + ramp_up_s * np.arange(users) / users
    evenly = bool(np.abs(starts_s - even_s).max() <= max(LEAST_S, SHARE * ramp_up_s))
    if evenly and users == run.max_concurrency and not _thinks(run, pauses_s):
        return replace(run, ramp_up_s=ramp_up_s)
    return replace(run, own_times=why)


def departs(run: Measured) -> str:
    """Tell how the times of sending contradict users who begin at once and never think; empty if they do not.

    Users who begin at once have all sent before the first answers come, so their first requests lie within
    the median TTFT of these. The request after those follows the end of an answer at once. Neither can be
    told of times that were made up; the second not where requests that failed are missing.
    """
    if run.drawn or not run.max_concurrency:
        return ""
    starts_s, pauses_s = _began(run)
    took_s = float(starts_s[-1] - starts_s[0])
    first = run.ttft_s[: len(starts_s)]
    known = first[~np.isnan(first)]
    if len(known) and took_s > float(np.median(known)):
        return f"the {len(starts_s):,} users began within {took_s:.3g} s, not at once"
    if _thinks(run, pauses_s):
        pause_s = float(np.median(pauses_s))
        return f"a request followed the end of an answer after {pause_s:.3g} s (median), not at once"
    return ""


def _thinks(run: Measured, pauses_s: Floats) -> bool:
    least_s = max(LEAST_S, SHARE * float(np.nanmedian(run.e2e_s))) if len(pauses_s) else LEAST_S
    return bool(len(pauses_s)) and float(np.median(pauses_s)) > least_s


def _began(run: Measured) -> tuple[Floats, Floats]:
    """Return when users began, and how long each further request came after the end of an answer (s).

    A request is of a new user where every answer that had ended before it was followed by one already. With
    requests missing that is not known: then the first ones are taken for the beginnings.
    """
    users = min(run.max_concurrency or 0, run.requests)
    if run.failed or np.isnan(run.e2e_s).any():
        return run.sent_s[:users], np.empty(0)
    ends_s = np.sort(run.sent_s + run.e2e_s)
    ended = np.searchsorted(ends_s, run.sent_s + LEAST_S, side="right")
    starts: list[float] = []
    pauses: list[float] = []
    for sent_s, over in zip(run.sent_s.tolist(), ended.tolist(), strict=True):
        if over > len(pauses) or len(starts) == users:
            pauses.append(sent_s - float(ends_s[len(pauses)]))
        else:
            starts.append(sent_s)
    return np.array(starts), np.array(pauses)
