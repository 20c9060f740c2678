"""How long sessions last, of which the long ones are cut more often."""

from __future__ import annotations

from array import array
from math import inf, log

import numpy as np
import pytest

from servesim.cluster.conversations import Ends
from servesim.results.sessions import percentile_of_stays


def ends(durations_s: list[float], open_s: list[float]) -> Ends:
    return Ends(durations_s=array("d", durations_s), open_s=array("d", open_s))


def test_of_sessions_that_all_ended_so_many_are_no_longer() -> None:
    assert percentile_of_stays(ends([5.0, 1.0, 4.0, 2.0, 3.0], []), 80) == 4.0
    assert percentile_of_stays(ends([5.0, 1.0, 4.0, 2.0, 3.0], []), 100) == 5.0


def test_what_cannot_be_told_is_infinite() -> None:
    """Of six, four were cut before the end of the others: a third may last for ever."""
    assert percentile_of_stays(ends([8.0, 9.0], [1.0] * 4), 95) == 9.0
    assert percentile_of_stays(ends([1.0, 2.0], [3.0] * 4), 50) == inf
    assert percentile_of_stays(ends([], []), 95) == inf


def test_exponential_stays_are_found_again_where_two_in_five_were_cut() -> None:
    """P(stay <= t) = 1 - exp(-t): 95% are through at ln 20; those that ended say less."""
    rng = np.random.default_rng(0)
    stays_s, cuts_s = rng.standard_exponential(20_000), rng.uniform(0.0, 5.0, 20_000)
    ended = stays_s <= cuts_s
    found = percentile_of_stays(ends(stays_s[ended].tolist(), cuts_s[~ended].tolist()), 95)
    assert found == pytest.approx(log(20), rel=0.05)
    assert np.percentile(stays_s[ended], 95) < 0.9 * log(20)
