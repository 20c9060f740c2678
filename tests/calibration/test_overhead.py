"""The engine terms: found again from runs made with known ones, and as good as they are said to be."""

from pathlib import Path

import pandas as pd
import pytest
import yaml

from calibration.conf import CONF
from calibration.overhead import CLOSED_LOOP, RUNS, Fit, Runs, fit_overheads, profile_named
from calibration.overhead import _tpot as tpot
from tests.shared import shared_data

VLLM, TRTLLM = RUNS


def made(step_s: float, sequence_s: float, prefill_factor: float) -> pd.DataFrame:
    """Return runs of Qwen3-32B whose TPOT is what the closed form says with these terms."""
    rows = pd.DataFrame(
        [
            {"tp_size": size, "isl": isl, "osl": osl, "concurrency": users, "backend_version": "1"}
            for size in (2, 4, 8)
            for isl, osl in ((1024, 128), (2048, 1024))
            for users in (4, 16, 64)
        ]
    )
    profile = profile_named("h100-sxm-vllm")
    terms = (step_s, sequence_s, prefill_factor)
    return rows.assign(
        silicon_tpot_ms=[1e3 * tpot(profile, "qwen3-32b", terms, row) for row in rows.itertuples()]
    )


def test_known_terms_are_found_again() -> None:
    fit = Fit.of(VLLM, made(1.5e-3, 3e-5, 1.25))
    said = yaml.safe_load(fit.text())
    assert said["step_s"] == pytest.approx(1.5e-3, rel=0.01)
    assert said["sequence_s"] == pytest.approx(3e-5, rel=0.01)
    assert said["prefill_factor"] == pytest.approx(1.25, rel=0.01)
    assert fit.errors(held_out=True).mape < 0.1
    assert fit.errors(held_out=True, kernels_alone=True).bias < -5


def test_terms_do_not_depend_on_what_is_held_out() -> None:
    rows = made(1e-3, 2e-5, 1.1)
    rows.loc[rows.tp_size == 4, "silicon_tpot_ms"] *= 3
    assert yaml.safe_load(Fit.of(VLLM, rows).text())["step_s"] == pytest.approx(1e-3, rel=0.01)


@pytest.mark.parametrize(("runs", "bar"), [(VLLM, 4.5), (TRTLLM, 6.5)], ids=["vllm", "trtllm"])
def test_held_out_runs_are_predicted(runs: Runs, bar: float) -> None:
    table = pd.read_csv(shared_data(*CLOSED_LOOP.parts))
    fit = Fit.of(runs, table[table.backend == runs.backend])
    assert len(fit.points) > 80
    assert fit.errors(held_out=True).mape <= bar
    assert fit.errors(held_out=True).mape < fit.errors(held_out=True, kernels_alone=True).mape


def test_refitting_gives_what_is_shipped(tmp_path: Path) -> None:
    data = shared_data("serving").parent
    for path in fit_overheads(data, tmp_path):
        fitted, shipped = (
            yaml.safe_load(one.read_text()) for one in (path, CONF / "engine_overhead" / path.name)
        )
        terms = ("step_s", "sequence_s", "prefill_factor")
        assert [fitted[name] for name in terms] == pytest.approx([shipped[name] for name in terms], rel=0.005)
        for name in ("model", "gpu", "ranges"):
            assert fitted[name] == shipped[name]


def test_the_range_is_of_the_runs_that_were_fitted() -> None:
    rows = made(1e-3, 2e-5, 1.1)
    rows.loc[(rows.tp_size == 4) & (rows.concurrency == 64), "concurrency"] = 65
    said = yaml.safe_load(Fit.of(VLLM, rows).text())
    assert said["ranges"] == {"sequences": [4, 64]}
    assert (said["model"], said["gpu"]) == ("qwen3-32b", "h100-sxm")
