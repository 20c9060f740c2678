"""What the dashboard refuses of a loaded sweep."""

import pytest

from servesim.report.dashboard.limits import out_of_bounds
from servesim.report.dashboard.state import State


@pytest.mark.parametrize(
    ("query", "paths"),
    [
        ("", []),
        ("?ttft=&sweep_price=", []),
        ("?ttft=-1&tpot=0", ["slo.ttft_s", "slo.tpot_s"]),
        ("?attainment=-3&sweep_price=-1", ["slo.attainment", "pricing.usd_per_gpu_hour"]),
    ],
)
def test_limits_that_a_run_refuses_are_refused_for_a_loaded_sweep(query: str, paths: list[str]) -> None:
    assert [problem.path for problem in out_of_bounds(State.read(query)[0])] == paths
