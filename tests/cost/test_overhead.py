"""The terms of an engine: what is said of the runs that they were fitted on."""

from typing import Any

import pytest
import yaml

from servesim.check import problems
from servesim.cost.overhead import EngineOverhead
from tests.cost.shipped import CONF

#: Requests at once in the runs that fitted each.
MOST = {"trtllm-1.0": 128, "vllm-0.12": 128, "vllm-0.8": 1000}


def overhead(ranges: dict[str, Any]) -> EngineOverhead:
    return EngineOverhead("some", "made", "1", 1e-3, 1e-5, 1.0, ranges=ranges)


@pytest.mark.parametrize(
    "path", sorted((CONF / "engine_overhead").glob("*.yaml")), ids=lambda path: path.stem
)
def test_shipped_terms_say_how_many_sequences_they_were_fitted_on(path: Any) -> None:
    one = EngineOverhead(**yaml.safe_load(path.read_text()))
    assert not list(problems(one))
    assert one.most_sequences == one.ranges["sequences"][1] == MOST[one.name]
    assert one.model
    assert one.gpu


def test_terms_without_a_range_hold_for_every_number() -> None:
    assert overhead({}).most_sequences == float("inf")
    assert not list(problems(overhead({})))


@pytest.mark.parametrize("said", [[128, 8], [8], [0, 8], [8.5, 9], 8, ["8", "9"], None])
def test_a_range_is_two_counts_in_order(said: Any) -> None:
    (problem,) = problems(overhead({"sequences": said}))
    assert problem.path == "ranges.sequences"


def test_other_ranges_are_refused() -> None:
    (problem,) = problems(overhead({"tokens": [1, 2]}))
    assert "unknown range" in problem.message
