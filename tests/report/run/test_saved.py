"""A run read from its folder is the run that was saved."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from servesim import ConfigError, load, run
from servesim.report.run.saved import Run
from tests.report.run.runs import KINDS, SMALL, made


def test_reading_is_the_inverse_of_saving(tmp_path: Path) -> None:
    result = run(load(*SMALL))
    result.save(tmp_path)
    read, kept = Run.read(tmp_path), Run.of(result)
    assert read.summary == kept.summary
    for name in ("requests", "steps"):
        pd.testing.assert_frame_equal(getattr(read, name), getattr(kept, name), check_dtype=False)


@pytest.mark.parametrize("kind", KINDS)
def test_pools_are_those_of_the_scenario(kind: str) -> None:
    pools = made(kind).pools
    for pool, deployment in zip(pools, load(*KINDS[kind]).deployments(), strict=True):
        for name in ("role", "gpu", "replicas", "first_replica", "tensor_parallel_size", "kv_blocks", "gpus"):
            assert getattr(pool, name) == getattr(deployment, name)
        assert pool.peak_flops_per_s == deployment.gpu.peak_flops("bf16")
    assert sum(len(made(kind).steps_of(pool)) for pool in pools) == len(made(kind).steps)


def test_what_is_missing_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="3 problems"):
        Run.read(tmp_path)


def test_what_is_broken_is_told(tmp_path: Path) -> None:
    run(load(*SMALL)).save(tmp_path)
    (tmp_path / "steps.parquet").write_text("nothing")
    with pytest.raises(ConfigError, match=r"steps\.parquet: cannot be read"):
        Run.read(tmp_path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    run(load(*SMALL)).save(folder)
    return folder


def spoilt(whole: Path, folder: Path, **changes: Any) -> str:
    """Return what is said of a copy of a run folder whose summary has been changed; None takes a key away."""
    shutil.copytree(whole, folder, dirs_exist_ok=True)
    summary = json.loads((whole / "summary.json").read_text())
    for path, value in changes.items():
        *places, last = path.split("__")
        part = summary
        for place in places:
            part = part[place]
        part[last] = value
        if value is None:
            del part[last]
    (folder / "summary.json").write_text(json.dumps(summary))
    return refusal(folder)


def refusal(folder: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        Run.read(folder)
    return str(caught.value)


@pytest.mark.parametrize("summary", ["{}", "[1]", "null", "3"])
def test_a_summary_of_another_shape_is_refused(summary: str, whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    (tmp_path / "summary.json").write_text(summary)
    assert "summary.json: is not of a run of this version: " in refusal(tmp_path)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"scenario": None}, "scenario: must be keys with values"),
        ({"scenario": 3}, "scenario = 3: must be keys with values"),
        ({"scenario__model": None}, "scenario.model: is missing"),
        ({"scenario__gpu__max_w": None}, "scenario.gpu.max_w: is missing"),
        ({"scenario__cluster": "x"}, "scenario.cluster = 'x'"),
        ({"scenario__workload": None}, "scenario.workload.kind: is missing"),
        ({"scenario__calibration": {"kind": "auto"}}, "scenario.calibration = "),
        ({"scenario__calibration": {"kind": "auto", "profiles": [3]}}, "scenario.calibration = "),
        ({"latency": []}, "latency = []: must be keys with values"),
        ({"latency__ttft_s": 3}, "latency.ttft_s = 3: must be keys with values"),
        ({"goodput__limits__ttft_s": None}, "goodput.limits.ttft_s: is missing"),
        ({"memory": {}}, "memory.serve.kv_blocks: is missing"),
        ({"duration_s": "x"}, "duration_s = 'x': must be a number"),
        ({"saturated": None}, "saturated: is missing"),
        ({"fairness": {"tenants": {}}}, "fairness.jain_index: is missing"),
    ],
)
def test_what_a_summary_lacks_is_told(
    changes: dict[str, Any], line: str, whole: Path, tmp_path: Path
) -> None:
    assert f"is not of a run of this version: {line}" in spoilt(whole, tmp_path, **changes)


@pytest.mark.parametrize(
    ("name", "change", "line"),
    [
        ("requests", lambda table: table.drop(columns="e2e_s"), "e2e_s: there is no such column"),
        ("steps", lambda table: table.drop(columns="flops"), "flops: there is no such column"),
        ("steps", lambda table: table[[]], "replica: there is no such column"),
        ("requests", lambda table: table.assign(sent_s=np.nan), "sent_s: has no value in 120 rows"),
        ("steps", lambda table: table.assign(start_s="x"), "start_s: must be a column of numbers"),
    ],
)
def test_what_a_table_lacks_is_told(
    name: str, change: Callable[[pd.DataFrame], pd.DataFrame], line: str, whole: Path, tmp_path: Path
) -> None:
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    path = tmp_path / f"{name}.parquet"
    change(pd.read_parquet(path)).to_parquet(path)
    assert f"{name}.parquet: is not of a run of this version: {line}" in refusal(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_every_run_has_the_shape_of_a_run(kind: str, tmp_path: Path) -> None:
    run(load(*KINDS[kind])).save(tmp_path)
    assert len(Run.read(tmp_path).requests)


def test_the_folder_of_several_runs_says_which_there_are(tmp_path: Path) -> None:
    for name in ("0", "1", "10", "2", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "summary.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ConfigError, match="holds the runs 0 to 10; name one"):
        Run.read(tmp_path)
