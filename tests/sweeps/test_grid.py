"""The grid of a study."""

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim import ConfigError
from servesim.config.groups import Groups
from servesim.sweeps.grid import STEADY, folded, grid
from servesim.sweeps.study import Load, Study

GROUPS = Groups.of(None)


def faults(study: Study) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        grid(study, GROUPS)
    return [str(problem) for problem in caught.value.problems]


def test_variants_come_first_and_the_last_axis_is_the_fastest() -> None:
    study = Study(variants={"a": ("scheduler=static",), "b": ()}, axes=("gpu=l40s,h100-sxm", "horizon_s=1,2"))
    found = grid(study, GROUPS)
    assert found.keys == ("gpu", "horizon_s")
    assert [(each.variant, *each.values) for each in found.configurations] == [
        (variant, gpu, horizon_s)
        for variant in ("a", "b")
        for gpu in ("l40s", "h100-sxm")
        for horizon_s in (1, 2)
    ]
    assert found.configurations[1].overrides == (STEADY, "scheduler=static", "gpu=l40s", "horizon_s=2")
    assert found.configurations[1].label(found.keys) == "a, gpu=l40s, horizon_s=2"


@given(st.lists(st.integers(1, 4), max_size=3), st.integers(0, 3))
def test_the_grid_is_the_product_of_its_parts(sizes: list[int], variants: int) -> None:
    study = Study(
        variants={f"v{number}": () for number in range(variants)},
        axes=tuple(f"key{n}={','.join(map(str, range(size)))}" for n, size in enumerate(sizes)),
    )
    found = grid(study, GROUPS).configurations
    assert len(found) == prod(sizes) * max(variants, 1)
    assert len(set(found)) == len(found)


def test_the_later_override_of_a_key_wins() -> None:
    study = Study(overrides=("steady=false", "gpu=l40s", "cluster.prefill.gpu=l40s"), axes=("gpu=h100-sxm",))
    (only,) = grid(study, GROUPS).configurations
    assert set(only.overrides) == {"steady=false", "gpu=h100-sxm", "cluster.prefill.gpu=l40s"}


def test_what_is_set_in_two_places_is_refused_all_at_once() -> None:
    study = Study(
        overrides=("seed=3", "horizon_s=1,2"),
        variants={"a": ("gpu=l40s",)},
        axes=("gpu=l40s,h100-sxm", "gpu=l40s", "x=", "workload.arrivals.rate_rps=1,2"),
        load=Load(),
    )
    assert faults(study) == [
        "axes.x=: is an axis without values; write key=value1,value2",
        "overrides = 'horizon_s=1,2': gives several values: write it under axes",
        "seeds: are the only place for seeds: seeds: 3, or seeds: [1, 5]",
        "axes = 'gpu': is swept by two axes",
        "variants.a = 'gpu': is swept by an axis, too",
        "load.key = 'workload.arrivals.rate_rps': is swept by an axis, too",
    ]


def test_what_is_typed_beside_a_study_wins() -> None:
    study = Study(
        overrides=("horizon_s=5", "router=random"),
        variants={"a": ("scheduler=static", "horizon_s=7"), "b": ()},
        axes=("gpu=l40s,h100-sxm",),
        load=Load(),
        seeds=2,
    )
    typed = ["horizon_s=9", "gpu=h200-sxm", "seed=3,4", "workload.arrivals.rate_rps=1,2", "model=a,b"]
    assert folded(study, typed, GROUPS) == Study(
        overrides=("router=random", "horizon_s=9", "gpu=h200-sxm"),
        variants={"a": ("scheduler=static",), "b": ()},
        axes=("workload.arrivals.rate_rps=1,2", "model=a,b"),
        load=None,
        seeds=(3, 4),
    )
    assert folded(study, ["seed=7"], GROUPS).each_seed == (7,)
    assert folded(study, [], GROUPS) == study


@pytest.mark.parametrize(
    "study",
    [
        Study(axes=("x=range(1,1001)", "y=range(1,1001)", "z=range(1,1001)")),
        Study(axes=("x=range(1,1000000001)",)),
        Study(axes=("x=range(1,5,0)",)),
        Study(axes=("x=range(0,1e300,1e-300)",)),
        Study(axes=("x=range(1,1001)",), seeds=101),
        Study(axes=("x=range(1,1001)",), load=Load(points=101)),
    ],
)
def test_more_points_than_anybody_waits_for_are_refused_before_they_are_made(study: Study) -> None:
    (fault,) = faults(study)
    assert "a sweep has at most 100,000" in fault


def test_a_range_gives_numbers() -> None:
    found = grid(Study(axes=("x=range(1,4)", "y=range(1,2,0.5)")), GROUPS).configurations
    assert [each.values for each in found] == [(x, y) for x in (1, 2, 3) for y in (1, 1.5)]
    assert found[1].overrides == (STEADY, "x=1", "y=1.5")


@pytest.mark.parametrize(
    "text", ["seed=x", "seed=-1", "seed=", "seed=1,1", "seed=true", f"seed={2**63}", "seed=range(0,1e9)"]
)
def test_a_seed_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="seed"):
        folded(Study(), [text], GROUPS)
