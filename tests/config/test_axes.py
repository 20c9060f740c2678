"""Axes: keys with several values."""

import pytest

from servesim.check import Problem
from servesim.config.axes import Axis, is_axis, read_axis
from servesim.config.groups import Groups

GROUPS = Groups.of(None)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("workload.arrivals.rate_rps=0.5,1,2e0", (0.5, 1, 2.0)),
        ("seed=range(1,4)", (1, 2, 3)),
        ("steady=true,false", (True, False)),
        ("horizon_s=null,5", (None, 5)),
        ("scheduler.max_model_len=auto,4096", ("auto", 4096)),
        ("gpu=h100-sxm,l40s", ("h100-sxm", "l40s")),
        ("workload/lengths=code", ("code",)),
        ("workload.path='a,b.csv',c.csv", ("a,b.csv", "c.csv")),
    ],
)
def test_values_are_read_as_hydra_does(text: str, values: tuple[object, ...]) -> None:
    axis = read_axis(text, GROUPS)
    assert isinstance(axis, Axis)
    assert axis.values == values
    assert [type(value) for value in axis.values] == [type(value) for value in values]
    assert len(axis.overrides) == len(values)
    assert all(override.startswith(f"{axis.key}=") for override in axis.overrides)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gpu", "write key=value1,value2"),
        ("=1,2", "write key=value1,value2"),
        ("~seed=1", "write key=value1,value2"),
        ("gpu=", "without values"),
        ("gpu= ", "without values"),
        ("gpu=glob(h*)", "write the values"),
        ("seed=1,2,1", "gives 1 twice"),
    ],
)
def test_what_is_no_axis_is_told_so(text: str, words: str) -> None:
    problem = read_axis(text, GROUPS)
    assert isinstance(problem, Problem)
    assert words in str(problem)


def test_several_values_make_an_axis() -> None:
    assert is_axis("gpu=h100-sxm,l40s")
    assert is_axis("seed=range(3)")
    assert not is_axis("gpu=h100-sxm")
    assert not is_axis("workload.lengths.table=[[0,1,1],[1,2,2]]")


@pytest.mark.parametrize("key", ["engine_args", "workload.path", "model.hf_config"])
def test_free_text_is_taken_as_it_was_meant(key: str) -> None:
    axis = read_axis(f"{key}=-a 1 --b,'c, d'", GROUPS)
    assert isinstance(axis, Axis)
    assert axis.values == ("-a 1 --b", "c, d")
    assert axis.overrides == (f"{key}=-a 1 --b", f"{key}=c, d")
