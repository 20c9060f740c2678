"""Rows of figures: dialects add their values, not their words."""

from servesim import load, run
from servesim.sweeps.flat import flatten


def test_the_values_of_a_dialect_are_figures_and_its_definitions_are_not() -> None:
    row = flatten(run(load("metrics=aiperf", "workload.requests=20")).summary)
    assert row["metrics.dialect"] == "aiperf"
    assert row["metrics.values.time_to_first_token.p99"] is not None
    assert not [name for name in row if name.startswith("metrics.definitions")]
