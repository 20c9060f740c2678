"""The verdict of a trial, from what its seeds contribute."""

import numpy as np

from servesim.frontier.judge import _STALLED, _Part, _together


def part(good: int, clean: bool = True, saturated: bool = False) -> _Part:
    return _Part(clean, saturated, 1000, good, np.ones(good), np.ones(good), 10.0, 1.0)


def test_requests_that_were_lost_are_misses_and_nothing_more() -> None:
    met = _together([part(999, clean=False), part(1000)], 0.99, (0, 1))
    assert (met.met, met.clean, met.attainment) == (True, False, 0.9995)
    assert not _together([part(900, clean=False), part(1000)], 0.99, (0, 1)).met


def test_a_seed_that_stalls_or_is_saturated_or_was_not_run_meets_nothing() -> None:
    for last in ([_STALLED], [part(1000, saturated=True)], []):
        assert not _together([part(1000), *last], 0.99, (0, 1)).met
    assert _together([part(1000), _STALLED], 0.99, (0, 7)).weakest_seed == 7
