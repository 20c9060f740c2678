"""Runs on a CPU: what they leave in the folder, whatever ends them."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from calibration.__main__ import main
from calibration.measure.case import Case
from calibration.measure.plan import COLLECTIVES, plan
from calibration.sources import measurements
from calibration.sources.tidy import COMMON, SHAPES, tidy
from tests.calibration.measure.kernels import torch

from calibration.measure import collectives, run  # isort: skip
from calibration.measure.bench import Bench, Prepared  # isort: skip
from calibration.measure.families import PREPARE  # isort: skip
from calibration.measure.machine import Machine, gpu_of  # isort: skip

SINGLE = [case for case in plan("cpu") if case.operation not in COLLECTIVES]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("measured")
    assert main(["measure", "--device", "cpu", "--out", str(made)]) == run.DONE
    return made


@pytest.fixture
def single(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return a run of the plan without collectives, whose processes take seconds to start."""
    monkeypatch.setattr(run, "plan", lambda device, budget: SINGLE)

    def measured(folder: Path) -> tuple[int, str]:
        said = io.StringIO()
        status = run.measure(folder, "cpu", 1.0, Console(file=said, width=200))
        return status, said.getvalue()

    return measured


def replace(
    monkeypatch: pytest.MonkeyPatch, operation: str, prepare: Callable[[Case, Bench], Prepared]
) -> None:
    monkeypatch.setitem(PREPARE, operation, prepare)


def rows(folder: Path) -> int:
    return sum(map(len, measurements.read(folder).values()))


def test_every_operation_has_rows_or_a_reason(folder: Path) -> None:
    timed = measurements.read(folder)
    failed = pd.read_parquet(folder / "failures.parquet")
    assert set(timed) == set(SHAPES)
    assert rows(folder) + len(failed) == len(plan("cpu"))
    assert failed.unsupported.all()
    assert failed.error.str.contains("needs").all()


@pytest.mark.parametrize("operation", SHAPES)
def test_tables_have_the_columns_and_types_of_the_readers(folder: Path, operation: str) -> None:
    values = {"bool": True, "int64": 1, "float64": 1.0}
    file = pd.read_parquet(folder / f"{operation}.parquet")
    table = measurements.read(folder)[operation]
    assert list(table) == list(file)[: len(table.columns)]
    assert set(table) == {*COMMON, *SHAPES[operation]}
    again = tidy(table.assign(**{name: table[name] for name in table}), operation)
    pd.testing.assert_frame_equal(table, again)
    assert (file.dtypes[table.columns] == table.dtypes).all()
    assert table.seconds.between(1e-9, 10).all()
    assert {str(kind) for kind in table.dtypes} <= {*values, "object", "str"}


def test_rows_say_what_they_were_timed_on_and_that_it_was_no_gpu(folder: Path) -> None:
    for path in folder.glob("*.parquet"):
        table = pd.read_parquet(path)
        assert (table.gpu == "cpu").all()
        assert (table.engine_version == torch.__version__).all()
        assert table.gpu_name.str.startswith("CPU").all()
        if path.stem != "failures":
            assert (table.timing == "host").all()
            assert not table.kernel.str.contains("flash").any()
            assert pd.to_datetime(table.date).notna().all()


def test_no_profile_is_fitted_to_a_cpu(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", "--measurements", str(folder), "--out", str(tmp_path)]) == 1
    assert "the tables are of cpu" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_run_goes_on_where_another_ended_and_times_nothing_twice(
    single: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed: list[Case] = []
    for name, prepare in list(PREPARE.items()):

        def counted(case: Case, bench: Bench, prepare: Any = prepare) -> Prepared:
            made = prepare(case, bench)
            timed.append(case)
            if len(timed) == 8:
                raise KeyboardInterrupt
            return made

        replace(monkeypatch, name, counted)
    status, said = single(tmp_path)
    assert status == run.INTERRUPTED
    assert "goes on from here" in said
    assert "not reached" in said
    before = rows(tmp_path)
    assert before == 7
    assert single(tmp_path)[0] == run.DONE
    again = timed.pop(7)
    assert again in timed
    assert len(set(timed)) == len(timed)
    assert rows(tmp_path) == len(timed)


def test_rows_are_not_touched_by_a_run_that_finds_all_of_them(
    single: Callable[..., Any], tmp_path: Path
) -> None:
    single(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.glob("*.parquet") if path.stem != "failures"}
    single(tmp_path)
    assert all(path.read_bytes() == content for path, content in before.items())


def test_a_failing_family_does_not_stop_the_rest(
    single: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def out_of_memory(case: Case, bench: Bench) -> Prepared:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory.\nTried to allocate")

    replace(monkeypatch, "gemm", out_of_memory)
    status, said = single(tmp_path)
    products = [case for case in SINGLE if case.operation == "gemm"]
    failed = pd.read_parquet(tmp_path / "failures.parquet")
    assert status == run.MISSING
    assert f"gemm: {len(products)} of {len(products)} missing: OutOfMemoryError: CUDA out of memory." in said
    assert set(measurements.read(tmp_path)) == set(SHAPES) - {"gemm", *COLLECTIVES}
    assert set(failed[~failed.unsupported]["shape"]) == set(map(str, products))


def test_what_failed_is_tried_again_and_forgotten_when_it_works(
    single: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        replace(broken, "norm", lambda case, bench: 1 / 0)  # type: ignore[arg-type, return-value]
        assert single(tmp_path)[0] == run.MISSING
    assert single(tmp_path)[0] == run.DONE
    assert "norm" not in set(pd.read_parquet(tmp_path / "failures.parquet").operation)


def test_a_run_ends_when_its_time_is_over(
    single: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "limit_seconds", lambda budget: 0.0)
    status, said = single(tmp_path)
    assert status == run.MISSING
    assert "The time is over" in said
    assert f"0 of {len(SINGLE)} shapes" in said


def test_a_gpu_that_answers_no_more_ends_the_run(
    single: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Bench, "is_broken", lambda self: True)
    replace(monkeypatch, "gemm", lambda case, bench: 1 / 0)  # type: ignore[arg-type, return-value]
    status, said = single(tmp_path)
    assert status == run.MISSING
    assert "answers no more after gemm" in said


def test_timings_of_other_versions_are_set_aside(
    single: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    single(tmp_path)
    before = rows(tmp_path)
    here = Machine.of(Bench("cpu"))
    for number in (1, 2):
        other = Machine(**{**vars(here), "driver": f"{number}"})
        monkeypatch.setattr(Machine, "of", lambda bench, other=other: other)
        assert f"moved to {tmp_path / f'other-{number}'}" in single(tmp_path)[1].replace("\n", "")
        assert rows(tmp_path / f"other-{number}") == rows(tmp_path) == before


def test_a_file_that_is_no_table_is_named(single: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "gemm.parquet").write_text("no parquet")
    with pytest.raises(run.SourceError, match=r"gemm\.parquet: cannot be read"):
        single(tmp_path)
    pd.DataFrame({"m": [1]}).to_parquet(tmp_path / "gemm.parquet")
    with pytest.raises(run.SourceError, match=r"gemm\.parquet: the columns .* are missing"):
        single(tmp_path)


def test_without_a_gpu_the_default_device_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    assert main(["measure", "--out", str(tmp_path)]) == 1
    assert "--device cpu" in capsys.readouterr().err


def test_the_times_of_a_group_are_those_of_its_slowest_and_an_end_of_it_is_told(tmp_path: Path) -> None:
    good = Case.of("all_reduce", gpus=2, bytes=1024, mode="eager")
    bad = Case.of("all_reduce", gpus=2, bytes=1024, mode="graph")
    found = list(collectives.measured([good, bad], "cpu", 2))
    assert [outcome.case for outcome in found] == [good, bad]
    assert found[0].kernel == "gloo_all_reduce"
    assert found[0].timing is not None
    assert np.isfinite(found[0].timing.seconds)
    assert "needs a GPU" in str(found[1].error)


@pytest.mark.parametrize(
    ("name", "gpu"),
    [
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA H200", "h200-sxm"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm-80gb"),
        ("NVIDIA H100 PCIe", "nvidia-h100-pcie"),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "nvidia-h100-80gb-hbm3-mig-1g-10gb"),
        ("NVIDIA A100-SXM4-40GB", "nvidia-a100-sxm4-40gb"),
    ],
)
def test_only_the_very_gpu_has_the_name_of_its_configuration(name: str, gpu: str) -> None:
    assert gpu_of(name) == gpu
