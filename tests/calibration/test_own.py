"""Profiles of own measurements: from tables made of known forms, and what the simulator makes of them."""

from contextlib import redirect_stdout
from dataclasses import dataclass
from hashlib import sha256
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from calibration.__main__ import main
from calibration.conf import gpu_named
from calibration.fit import moe
from calibration.measure import predicted
from calibration.measure.plan import plan
from calibration.sources import measurements
from calibration.sources.tidy import tidy
from servesim import load
from servesim.cost.kernels.all_reduce import AllReduce
from servesim.cost.kernels.gemm import Gemm
from servesim.cost.profile import Profile

#: The part of the default plan that is made into tables: enough rows for most fits.
BUDGET = 0.35

#: Kernel that experts are fitted to, and how far step times may be from those of the forms behind the tables.
GROUPED, CLOSE = "torch_grouped_mm", 0.05

#: What the files say beside the tidy columns; as YAML the driver's version would be a number.
MACHINE = {"gpu_name": "NVIDIA H100 80GB HBM3", "driver": "535.104", "libraries": "one's", "kernel": GROUPED}


def tables(**changes: str) -> dict[str, pd.DataFrame]:
    """Return the times that the shipped profile of the H100 predicts, as if they had been measured."""
    said = {"gpu": "h100-sxm", "engine": "torch", "engine_version": "2.13.0", "source": "", "kernel": GROUPED}
    rows: dict[str, list[dict[str, object]]] = {}
    for case in plan("cuda", BUDGET):
        row = {**said, **changes, **case.shape, "seconds": predicted.seconds(case)}
        rows.setdefault(case.operation, []).append(row)
    return {operation: pd.DataFrame(each) for operation, each in rows.items()}


@dataclass(frozen=True)
class Own:
    """A configuration folder with a profile fitted by the command, and what that printed."""

    folder: Path
    printed: str

    @property
    def said(self) -> dict[str, Any]:
        return dict(yaml.safe_load((self.folder / "calibration" / "h100-sxm-torch.yaml").read_text()))


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Own:
    folder = tmp_path_factory.mktemp("own")
    measured = folder / "measured"
    measurements.write(tables(), measured)
    for path in measured.iterdir():
        pd.read_parquet(path).assign(**MACHINE).to_parquet(path)
    with redirect_stdout(StringIO()) as printed:
        assert main(["fit", "--measurements", str(measured), "--out", str(folder / "calibration")]) == 0
    return Own(folder, printed.getvalue())


def refused(tmp_path: Path, made: dict[str, pd.DataFrame], capsys: pytest.CaptureFixture[str]) -> str:
    measurements.write(made, tmp_path / "measured")
    assert main(["fit", "--measurements", str(tmp_path / "measured"), "--out", str(tmp_path / "out")]) == 1
    assert not (tmp_path / "out").exists()
    return capsys.readouterr().err


def test_the_forms_behind_the_tables_are_found(own: Own) -> None:
    said = own.said
    assert said["name"] == "h100-sxm-torch"
    assert {"gemm", "decode_attention", "prefill_attention", "all_reduce", "moe"} <= set(said["errors"])
    for operation in ("decode_attention", "prefill_attention", "moe"):
        assert said["errors"][operation]["bf16"]["held_out"]["mape"] < 5
    h100 = gpu_named("h100-sxm")
    sizes = np.array([2.0**power for power in range(14, 27)])
    for name, form in said["all_reduce"].items():
        known = predicted._form(AllReduce, "all_reduce", name).seconds(h100, sizes)
        assert np.abs(AllReduce(**form).seconds(h100, sizes) / known - 1).max() < 0.1
    rows = np.array([1.0, 16, 256, 4096])
    known = predicted._form(Gemm, "gemm", "bf16").seconds(h100, rows, 8192, 8192)
    assert np.abs(Gemm(**said["gemm"]["bf16"]).seconds(h100, rows, 8192, 8192) / known - 1).max() < 0.1


def test_the_simulator_runs_on_a_profile_of_ones_own(own: Own) -> None:
    given = ("model=llama3.1-8b", "model.weights_dtype=bf16")
    scenario, shipped = (
        load(f"calibration={name}", *given, config_dir=own.folder)
        for name in ("h100-sxm-torch", "h100-sxm-vllm")
    )
    assert isinstance(scenario.calibration, Profile)
    assert scenario.calibration.engine == "torch"
    mine, known = (each.deployments()[0].step_time for each in (scenario, shipped))
    for sequences, context in ((1, 128), (16, 16 * 1024), (128, 128 * 2048)):
        assert mine.decode(sequences, context) == pytest.approx(known.decode(sequences, context), rel=CLOSE)


def test_a_profile_says_what_was_timed_on_which_machine(own: Own) -> None:
    provenance = own.said["provenance"]
    assert provenance["package"] == "own measurements"
    assert {name: provenance[name] for name in ("gpu_name", "driver", "libraries")} == {
        name: MACHINE[name] for name in ("gpu_name", "driver", "libraries")
    }
    assert set(provenance["kernels"].values()) == {GROUPED}
    content = (own.folder / "measured" / "gemm.parquet").read_bytes()
    assert provenance["tables"]["gemm.parquet"] == sha256(content).hexdigest()


def test_rows_that_no_fit_used_are_told(own: Own) -> None:
    assert "norm: 14 of 14 rows in no fit (profiles have no form for them)" in own.printed
    eager = tables()["all_reduce"]["mode"].eq("eager").sum()
    assert f"all_reduce: {eager} of " in own.printed
    assert "gemm: " not in own.printed


def test_the_errors_of_own_profiles_are_printed(own: Own, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["errors", "--out", str(own.folder / "calibration")]) == 0
    assert "| h100-sxm-torch | gemm | bf16 |" in capsys.readouterr().out


def test_experts_that_were_looped_over_are_no_fit() -> None:
    h100 = gpu_named("h100-sxm")
    assert len(list(moe.jobs(h100, tidy(tables()["moe"], "moe")))) == 1
    assert not list(moe.jobs(h100, tidy(tables(kernel="torch_loop")["moe"], "moe")))


def test_what_a_step_needs_must_be_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = tables()
    made["gemm"] = made["gemm"].head(20)
    del made["prefill_attention"]
    said = refused(tmp_path, made, capsys)
    assert "gemm: no fit in bf16, of 20 rows" in said
    assert "prefill_attention: no fit in bf16, of 0 rows" in said


@pytest.mark.parametrize("gpu", ["cpu", "nvidia-h100-pcie"])
def test_only_gpus_of_the_configuration_get_profiles(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], gpu: str
) -> None:
    assert f"the tables are of {gpu}; profiles are fitted for" in refused(tmp_path, tables(gpu=gpu), capsys)


def test_tables_of_two_machines_are_no_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = tables() | {"norm": tables(engine_version="2.12.0")["norm"]}
    assert "are of several: h100-sxm torch 2.13.0; h100-sxm torch 2.12.0" in refused(tmp_path, made, capsys)


def test_an_empty_folder_and_a_choice_of_gpu_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", "--measurements", str(tmp_path)]) == 1
    assert "holds no measurements" in capsys.readouterr().err
    assert main(["fit", "--measurements", str(tmp_path), "--gpu", "h100-sxm"]) == 1
    assert "leave out --gpu" in capsys.readouterr().err
