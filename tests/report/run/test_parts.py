"""Parts sum to latencies, in every band."""

import numpy as np
import pytest

from servesim.report.run.parts import BANDS, bands, e2e_parts, stacked, ttft_parts
from tests.report.run.runs import KINDS, made

SERVED = [kind for kind in KINDS if kind != "nothing_served"]


@pytest.mark.parametrize("kind", SERVED)
@pytest.mark.parametrize(("column", "parts_of"), [("e2e_s", e2e_parts), ("ttft_s", ttft_parts)])
def test_parts_sum_to_the_latency_and_none_is_negative(kind: str, column: str, parts_of: object) -> None:
    completed = made(kind).requests.dropna(subset=["e2e_s"])
    parts = parts_of(completed)  # type: ignore[operator]
    np.testing.assert_allclose(sum(parts.values()), completed[column], atol=1e-9)
    assert all(part.min() > -1e-9 for part in parts.values())
    table = bands(completed, column, parts)
    np.testing.assert_allclose(table[[*parts]].sum(axis=1), table.mean_s, atol=1e-9)


@pytest.mark.parametrize("kind", SERVED)
def test_bands_hold_every_request_once_from_fast_to_slow(kind: str) -> None:
    completed = made(kind).requests.dropna(subset=["e2e_s"])
    table = bands(completed, "e2e_s", e2e_parts(completed))
    assert table.requests.sum() == len(completed)
    assert table.mean_s.is_monotonic_increasing
    assert np.average(table.mean_s, weights=table.requests) == pytest.approx(completed.e2e_s.mean())
    assert len(table) <= len(BANDS)


def test_bars_are_the_rows_and_shares_sum_to_one() -> None:
    completed = made("preempting").requests
    table = bands(completed, "e2e_s", e2e_parts(completed))
    names = [*e2e_parts(completed)]
    seconds, shares = (stacked(table, names, shares=kind) for kind in (False, True))
    for bar in seconds.data:
        np.testing.assert_array_equal(bar.x, table[bar.name.replace(" ", "_")])
    np.testing.assert_allclose(sum(np.array(bar.x) for bar in shares.data), 1)
    assert {"queue", "prefill", "preempted", "decode"} <= {bar.name for bar in seconds.data}
    assert "transfer" not in {bar.name for bar in seconds.data}  # nobody had any
