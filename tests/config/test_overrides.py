"""What the user typed, as Hydra gets it."""

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import example, given
from hypothesis import strategies as st

from servesim.config.groups import Groups
from servesim.config.overrides import Overrides, one_value, quoted

GROUPS = Groups.of(None)


def ready(*typed: str, sweeping: bool = False) -> list[str]:
    overrides = Overrides(typed, GROUPS, sweeping)
    assert not overrides.problems
    return overrides.ready


def faults(*typed: str, sweeping: bool = False) -> list[str]:
    return [str(problem) for problem in Overrides(typed, GROUPS, sweeping).problems]


@pytest.mark.parametrize(
    ("typed", "handed_on"),
    [
        ("workload.arrivals.rate_rps=12", "++workload.arrivals.rate_rps=12"),
        ("schedulr=static", "++schedulr=static"),
        ("scheduler=static", "scheduler=static"),
        ("admission=null", "admission=none"),
        ("workload/arrivals=gamma", "workload/arrivals=gamma"),
        ("gpu@cluster.prefill.gpu=h200-sxm", "gpu@cluster.prefill.gpu=h200-sxm"),
        ("cluster.prefill.gpu=h200-sxm", "gpu@cluster.prefill.gpu=h200-sxm"),
        ("cluster.prefill.gpu.usd_per_hour=3", "++cluster.prefill.gpu.usd_per_hour=3"),
        ("cluster=${scheduler}", "cluster=${scheduler}"),
        ("hydra.run.dir=x", "hydra.run.dir=x"),
        ("hydra/launcher=basic", "hydra/launcher=basic"),
        ("+a=1", "+a=1"),
        ("++a=1", "++a=1"),
        ("~seed", "~seed"),
        ("seed=[1", "++seed='[1'"),
        ("workload.path=a b(1)=x.csv", "++workload.path='a b(1)=x.csv'"),
        ("workload.path=a,b.csv", "++workload.path='a,b.csv'"),
        ("workload.path='a,b.csv'", "++workload.path='a,b.csv'"),
        ("workload.path=it's", r"++workload.path='it\'s'"),
        ("workload.path=null", "++workload.path=null"),
        ("model.hf_config=a b,(1).json", "++model.hf_config='a b,(1).json'"),
        ("engine_args=--a b,c --d=[1", "++engine_args='--a b,c --d=[1'"),
        ("engine_args=--api-key ${KEY}", r"++engine_args='--api-key \${KEY}'"),
        ("engine_args=null", "++engine_args=null"),
    ],
)
def test_each_override_is_handed_on_in_its_way(typed: str, handed_on: str) -> None:
    assert ready(typed) == [handed_on]


@example(r"a\'b\\'c")
@example("ends in \\")
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\x00$"), min_size=1))
def test_quoted_text_is_read_as_it_stands(text: str) -> None:
    override = OverridesParser.create().parse_override(f"key={quoted(text)}")
    assert override.value() == text


@pytest.mark.parametrize("typed", ["plan", "=3", "a b=3", "..=3", ""])
def test_what_is_no_override_is_told_so(typed: str) -> None:
    assert faults(typed) == [f"{typed}: is not an override; write key=value".removeprefix(": ")]


def test_a_choice_that_does_not_exist_is_told_and_left_out() -> None:
    overrides = Overrides(["gpu=mi300x", "scheduler=continous", "seed=1"], GROUPS)
    assert overrides.ready == ["++seed=1"]
    assert overrides.misplaced == ["gpu", "scheduler", "cluster"]
    assert [problem.path for problem in overrides.problems] == ["gpu", "scheduler"]
    assert faults("gpu=null", "model=[a,b]", "router=") != []


def test_several_values_are_several_runs() -> None:
    assert ready("seed=1,2", "scheduler=static,continuous", "gpu=glob(h*)", sweeping=True) == [
        "++seed=1,2",
        "scheduler=static,continuous",
        "gpu=glob(h*)",
    ]
    assert ready("admission=null,queue_limit", sweeping=True) == ["admission=none,queue_limit"]
    assert faults("seed=1,2", "scheduler=static,continuous") == [
        "seed = '1,2': several values are several runs: add -m",
        "scheduler = 'static,continuous': several values are several runs: add -m",
    ]


def test_each_choice_of_a_sweep_is_looked_up() -> None:
    assert len(faults("scheduler=static,x,y", sweeping=True)) == 2


def test_the_first_run_of_a_sweep_has_the_first_values() -> None:
    overrides = Overrides(["seed=1,2", "gpu=glob(h*)", "steady=true", "horizon_s=range(5,9)"], GROUPS, True)
    assert overrides.first_values() == ["++seed=1", "++steady=true", "++horizon_s=5"]


def test_a_scheduler_without_a_cluster_of_its_name_asks_for_one(tmp_path: pytest.TempPathFactory) -> None:
    folder = tmp_path / "scheduler"  # type: ignore[operator]
    folder.mkdir()
    (folder / "mine.yaml").touch()
    groups = Groups.of(folder.parent)
    assert [problem.path for problem in Overrides(["scheduler=mine"], groups).problems] == ["cluster"]
    assert not Overrides(["scheduler=mine", "cluster=continuous"], groups).problems


@pytest.mark.parametrize(
    "typed",
    [["seed=range(0,1000000000)"], ["seed=range(0,1000)", "horizon_s=range(1,1000)"], ["seed=range(1,5,0)"]],
)
def test_more_runs_than_anybody_waits_for_are_refused_before_they_are_made(typed: list[str]) -> None:
    (problem,) = Overrides(typed, Groups.of(None), sweeping=True).problems
    assert "more than 100,000 runs" in problem.message


@pytest.mark.parametrize(
    "text",
    ["engine_args=--a b,c", "engine_args=-tp 2", "workload.path=a,b.csv", "seed=1,2", "engine_args=it's,two"],
)
def test_one_value_is_one_where_several_would_be_a_sweep(text: str) -> None:
    alone = one_value(text)
    if text.startswith("seed"):
        assert alone == text
    else:
        (swept,) = ready(alone, sweeping=True)
        override = OverridesParser.create().parse_override(swept)
        assert not override.is_sweep_override()
        assert override.value() == text.partition("=")[2]
