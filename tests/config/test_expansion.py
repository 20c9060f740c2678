"""Many scenarios from few compositions: the same scenarios, and the same complaints, as one by one."""

from pathlib import Path
from typing import Any

import pytest

from servesim import ConfigError, Scenario, load
from servesim.check import Problem
from servesim.config.compose import compose
from servesim.config.expansion import Expansion
from servesim.config.groups import Groups
from servesim.config.loading import Built

GROUPS = Groups.of(None)
SHARED = Expansion(GROUPS)

#: Options that go with any of the others, and what a study would cross them with.
OPTIONS = [
    *(f"gpu={name}" for name in GROUPS.options("gpu")),
    *(f"{group}={name}" for group in ("router", "slo", "engine_overhead") for name in GROUPS.options(group)),
    *(
        f"workload/{group}={name}"
        for group in ("arrivals", "lengths")
        for name in GROUPS.options(f"workload/{group}")
    ),
]
SMALL = ["model=llama3.1-8b", "calibration=roofline"]


def one_by_one(typed: list[str], config_dir: Path | None = None) -> Scenario | list[Problem]:
    """Return the scenario that a composition of its own gives, or what is wrong with it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("servesim.config.loading.composed", lambda texts, folder: compose(list(texts), folder))
        try:
            return load(*typed, config_dir=config_dir)
        except ConfigError as error:
            return list(error.problems)


def said(built: Built) -> Scenario | list[Problem] | None:
    """Return what an expansion gave, in the same form."""
    return [*built.refused, *built.unfit] or built.scenario


@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_is_the_one_that_hydra_composes(option: str) -> None:
    typed = [*SMALL, option, "seed=3"]
    assert said(SHARED.scenario(typed)) == one_by_one(typed) == load(*typed)


@pytest.mark.parametrize(
    "typed",
    [
        [],
        ["workload.arrivals.rate_rps=7", "gpu.usd_per_hour=3"],
        ["scheduler=static", "scheduler.batch_size=8", "gpu=l40s", "model=llama3.1-8b"],
        ["scheduler=disaggregated", "cluster.prefill.gpu=h200-sxm", "gpu.usd_per_hour=1"],
        ["scheduler=disaggregated", "cluster.prefill.gpu=h200-sxm", "cluster.prefill.gpu.usd_per_hour=1"],
        ["gpu.name=mine", "engine_overhead=trtllm-1.0"],
        ["gpu=h200-sxm", "gpu.hbm_bytes_per_s=1e12", "calibration=auto"],
        ["workload/lengths=fixed", "workload.lengths.input=100", "horizon_s=null", "steady=true"],
        ["workload.lengths={kind: fixed, input: 5, output: 5, table: null, rank_correlation: null}"],
        ["engine_overhead=null"],
        ["gpu.usd_per_hour=${gpu.idle_w}"],
        ["workload/arrivals=schedule", "workload.arrivals.rates=[[0,1],[5,2]]"],
        ["scheduler.max_model_len='auto'", "router=random"],
    ],
    ids=" ".join,
)
def test_settings_give_the_scenario_that_hydra_composes(typed: list[str]) -> None:
    for _ in range(2):  # the second time with components at hand
        assert said(SHARED.scenario(typed)) == one_by_one(typed)


@pytest.mark.parametrize(
    "typed",
    [
        ["sed=3", "workload.arrivals.rate_rps=-1"],
        ["scheduler=static", "scheduler.max_num_seqs=8"],
        ["gpu=mi300x", "seed=x"],
        ["workload.lengths.table.x=1"],
        ["gpu.x.y=1", "model.name.z=2"],
        ["workload=trace", "workload.path=nowhere.csv"],
        ["workload=trace", "workload/lengths=fixed"],
        ["cluster.tensor_parallel_size=3"],
        ["model=llama3.1-405b", "cluster.tensor_parallel_size=1"],
        ["workload/lengths=fixed", "workload.lengths.inptu=3"],
    ],
    ids=" ".join,
)
def test_complaints_are_those_of_a_single_run(typed: list[str]) -> None:
    SHARED.scenario(typed[:0])  # something to share components with
    found = said(SHARED.scenario(typed))
    assert isinstance(found, list)
    assert found == one_by_one(typed)


def test_what_does_not_fit_is_kept_apart_from_what_is_wrong() -> None:
    assert SHARED.scenario(["model=llama3.1-405b", "cluster.tensor_parallel_size=1"]).refused == []
    assert SHARED.scenario(["workload.arrivals.rate_rps=-1"]).unfit == []


@pytest.fixture
def compositions(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    found: list[list[str]] = []

    def counted(overrides: list[str], *more: Any) -> Any:
        found.append(overrides)
        return compose(overrides, *more)

    monkeypatch.setattr("servesim.config.compositions.compose", counted)
    return found


def test_hydra_composes_once_for_all_values_and_plain_options(compositions: list[list[str]]) -> None:
    scenarios = Expansion(GROUPS)
    for gpu in ("h100-sxm", "h200-sxm", "l40s"):
        for rate in (1, 2, 4):
            scenarios.scenario([*SMALL, f"gpu={gpu}", f"workload.arrivals.rate_rps={rate}"])
    assert len(compositions) == 1
    scenarios.scenario([*SMALL, "scheduler=static"])
    scenarios.scenario([*SMALL, "scheduler=static", "scheduler.batch_size=4"])
    assert len(compositions) == 2


def test_components_that_do_not_differ_are_shared() -> None:
    scenarios = Expansion(GROUPS)
    first = scenarios.scenario(["workload.arrivals.rate_rps=1"]).scenario
    second = scenarios.scenario(["workload.arrivals.rate_rps=2"]).scenario
    assert first is not None
    assert second is not None
    assert first.calibration is second.calibration
    assert first.workload is not second.workload
    assert first.workload.lengths is second.workload.lengths  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("gpu/mine.yaml", "defaults: [h100-sxm, _self_]\nname: mine\n"),
        ("gpu/mine.yaml", "# @package _global_\nseed: 5\n"),
        ("slo/mine.yaml", "ttft_s: ${seed}\ntpot_s: null\ne2e_s: null\nattainment: 0.5\n"),
        ("slo/mine.yaml", "ttft_s: 1e-1\ntpot_s: null\ne2e_s: null\nattainment: 0.5\n"),
        ("slo/mine.yaml", ""),
    ],
)
def test_options_of_ones_own_are_what_hydra_makes_of_them(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir()
    path.write_text(text)
    typed = [*SMALL, f"{path.parent.name}=mine", "seed=4"]
    assert said(Expansion(Groups.of(tmp_path), tmp_path).scenario(typed)) == one_by_one(typed, tmp_path)
