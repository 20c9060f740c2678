"""What follows from an earlier composition is what Hydra composes, and files that change are read again."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from servesim import load
from servesim.config import compositions
from servesim.config.compose import compose
from servesim.config.compositions import Compositions, composed
from servesim.config.groups import Groups, conf_dir

SHIPPED = Compositions(Groups.of(None))


@pytest.fixture
def hydra_calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[list[str]]]:
    """What Hydra is asked to compose, nothing being known from before."""
    calls: list[list[str]] = []

    def counted(overrides: list[str], config_dir: Path | None = None) -> compositions.Composed:
        calls.append(overrides)
        return compose(overrides, config_dir)

    monkeypatch.setattr(compositions, "compose", counted)
    compositions._shipped.cache_clear()
    yield calls
    compositions._shipped.cache_clear()


@pytest.fixture
def own_conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of ``conf/`` that stands in its place."""
    folder = tmp_path / "conf"
    shutil.copytree(conf_dir(), folder)
    for module in ("compositions", "compose", "groups"):
        monkeypatch.setattr(f"servesim.config.{module}.conf_dir", lambda: folder)
    return folder


@pytest.mark.parametrize(
    "overrides",
    [
        ["++seed=1", "++seed=2", "++seed=1"],
        ["gpu=l40s", "gpu=h200-sxm"],
        ["++gpu.usd_per_hour=3", "gpu=l40s", "++seed=1"],
        ["++gpu.usd_per_hour=3", "++slo={ttft_s: 1}", "++slo.ttft_s=2"],
        ["++slo.ttft_s=2", "++slo={ttft_s: 1}"],
        ["scheduler=disaggregated", "++cluster.decode.gpu.usd_per_hour=1", "gpu=l40s"],
        ["++model.name.x=1", "~slo.ttft_s"],
        ["++gpu=l40s"],
        ["++hydra.job.num=7", "++seed=3"],
        ["+seed=3"],
        ["workload=trace", "workload/lengths=fixed", "++seed=3"],
    ],
    ids=" ".join,
)
def test_a_composition_is_the_one_that_hydra_makes(overrides: list[str]) -> None:
    assert composed(overrides) == SHIPPED.of(overrides) == compose(overrides)


def test_what_differs_by_values_and_plain_options_is_composed_once(hydra_calls: list[list[str]]) -> None:
    for gpu in ("h100-sxm", "l40s"):
        for seed in (1, 2):
            assert load("model=llama3.1-8b", f"gpu={gpu}", f"seed={seed}").seed == seed
    assert hydra_calls == [[]]


def test_nothing_is_changed_in_what_is_kept() -> None:
    first = load()
    assert load("gpu.usd_per_hour=9", "slo=batch", "notes=[mine]") != first
    assert load() == first


def test_a_shipped_file_that_changes_is_read_again(own_conf: Path) -> None:
    file = own_conf / "gpu" / "l40s.yaml"
    before = file.stat()
    prices = [load("gpu=l40s").gpu.usd_per_hour]
    text = file.read_text()
    for name, price in (("l40s", "7.25"), ("mine", "8.25"), ("l40s", "9.25")):
        changed = text.replace(f"usd_per_hour: {prices[0]}", f"usd_per_hour: {price}")
        (own_conf / "gpu" / f"{name}.yaml").write_text(changed)
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # as some copying tools do
        prices.append(load(f"gpu={name}").gpu.usd_per_hour)
    assert prices[1:] == [7.25, 8.25, 9.25]


def test_a_file_of_ones_own_that_changes_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "slo" / "mine.yaml"
    file.parent.mkdir()
    for limit in (1.0, 2.0, 3.0):
        file.write_text(f"ttft_s: {limit}\ntpot_s: null\ne2e_s: null\nattainment: 0.5\n")
        assert load("slo=mine", config_dir=tmp_path).slo.ttft_s == limit


def test_the_environment_is_read_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for price in (1.5, 2.5):
        monkeypatch.setenv("PRICE", str(price))
        assert load("gpu.usd_per_hour=${oc.decode:${oc.env:PRICE}}").gpu.usd_per_hour == price


def test_a_folder_that_hydra_alone_knows_is_read_each_time(tmp_path: Path) -> None:
    (tmp_path / "gpu").mkdir()
    file = tmp_path / "gpu" / "mine.yaml"
    for price in (1.5, 2.5):
        file.write_text(f"usd_per_hour: {price}\n")
        typed = [f"hydra.searchpath=[file://{tmp_path}]", "+gpu@extra=mine"]
        composition, _ = composed(typed)
        assert composition is not None
        assert composition.values["extra"] == {"usd_per_hour": price}


def test_no_more_is_kept_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compositions, "_MOST_KEPT", 2)
    known = Compositions(Groups.of(None))
    for rate in (1, 2, 3):
        known.of([f"++workload.arrivals.rates=[[0,{rate}]]"])
    assert len(known._known) <= 2
