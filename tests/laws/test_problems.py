"""Bad input: each thing that is wrong with it is told, and told once."""

from __future__ import annotations

import pytest

import servesim
from servesim.check import ConfigError, Problem

SPLIT = "scheduler=disaggregated"
POOLS = ("cluster.prefill", "cluster.decode")
THREE = tuple(f"{pool}.tensor_parallel_size=3" for pool in POOLS)
DRAFT = "scheduler/speculation=draft_model"

#: What is typed, and how many things are wrong with it.
BAD = {
    "what both pools share": ((SPLIT, "scheduler.max_model_len=200000"), 1),
    "a prompt that both lack room for": (
        (SPLIT, "workload=sessions", "workload.system_prompt_tokens=200000"), 1,
    ),
    "a step that both form": (
        (SPLIT, "scheduler.enable_chunked_prefill=false", "scheduler.max_num_batched_tokens=100"), 1,
    ),
    "a GPU of both": ((SPLIT, "gpu.hbm_bytes_per_s=-1"), 1),
    "a draft for both": ((SPLIT, DRAFT, "scheduler.speculation.model.vocab_size=1024"), 1),
    "a model and its draft in a pool": ((DRAFT, "cluster.tensor_parallel_size=3"), 2),
    "a model and its draft in two pools": ((SPLIT, DRAFT, *THREE), 4),
    "heads of the shape of their model": ((SPLIT, "scheduler/speculation=eagle", *THREE), 2),
    "and their own vocabulary": ((SPLIT, "scheduler/speculation=eagle3", *THREE), 4),
    "an engine's flags": (("engine_args=--tensor-parallel-size 3 --tensor-parallel-size 3",), 1),
    "a key and its like": (("sede=1", "sede=1", "seed=-1"), 2),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_each_problem_is_told_once(name: str) -> None:
    """Whoever of several finds it: two pools, a model and its draft, a field and what it is part of."""
    typed, count = BAD[name]
    with pytest.raises(ConfigError) as caught:
        servesim.load(*typed)
    problems = caught.value.problems
    assert len(problems) == count
    assert len({(problem.path, problem.message) for problem in problems}) == count


def test_an_error_lists_what_it_is_given_once_in_order() -> None:
    one, other = Problem("a", [1], "is wrong"), Problem("a", [2], "is wrong")
    assert ConfigError([other, one, other, one]).problems == (other, one)
