"""A fit finds the coefficients that made the times, says how far off it is, and comes out the same again."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from calibration.fit import all_reduce, gemm
from calibration.fit.errors import Errors
from calibration.fit.job import ALL, Job
from calibration.fit.split import held_out
from servesim.cost.kernels.gemm import Gemm
from tests.cost.kernels.forms import CASES, H100

TRUE: Gemm = CASES["gemm, searched"].form


def table(noise: float = 0.0) -> pd.DataFrame:
    """Return a made table of BF16 products, timed by a known form."""
    sizes = [512, 1024, 2048, 4096, 8192, 16384]
    ms = [1, 4, 16, 64, 128, 256, 512, 1024, 4096]
    shapes = pd.MultiIndex.from_product([ms, sizes, sizes], names=["m", "n", "k"]).to_frame(index=False)
    seconds = TRUE.seconds(H100, shapes.m.to_numpy(), shapes.n.to_numpy(), shapes.k.to_numpy())
    factor = np.exp(noise * np.random.default_rng(0).standard_normal(len(shapes)))
    return shapes.assign(dtype="bf16", engine="vllm", seconds=seconds * factor)


def job(noise: float = 0.0) -> Job:
    (only,) = gemm.jobs(H100, table(noise))
    return only


def test_it_finds_the_form_that_made_the_times() -> None:
    fit = job().fitted()
    assert fit.held_out.p90 < 1
    assert fit.whole_shapes.mape < 1
    assert fit.coefficients["bandwidth"] == pytest.approx(TRUE.bandwidth, rel=0.02)
    assert fit.coefficients["tile_rate"] == pytest.approx(TRUE.tile_rate, rel=0.02)


def test_noise_shows_as_error_and_not_as_bias() -> None:
    """Normal noise of 10%: its size has a median of 6.7% and a mean of 8.0%."""
    mean = job(noise=0.1).fitted().mean(ALL)
    assert mean.mdape == pytest.approx(6.7, abs=1.5)
    assert mean.mape == pytest.approx(8.0, abs=1.5)
    assert abs(mean.bias) < 2


def test_a_fit_comes_out_the_same_again() -> None:
    assert job(noise=0.1).shipped() == job(noise=0.1).shipped()


def test_held_out_rows_do_not_enter_the_fit() -> None:
    plain = job()
    out = plain.rows.seconds.where(~_held_out(plain), 100.0)
    assert dataclasses.replace(plain, rows=plain.rows.assign(seconds=out)).shipped() == plain.shipped()


def _held_out(made: Job) -> np.ndarray:
    return held_out(made.rows, made.shape)[:, 0]


def test_excluded_rows_are_neither_fitted_nor_scored() -> None:
    plain = job()
    excluded = plain.rows.m.eq(1).to_numpy()
    wrong = plain.rows.assign(seconds=plain.rows.seconds.where(~excluded, 1e-9))
    fit = dataclasses.replace(plain, rows=wrong, excluded=excluded).fitted()
    assert fit.held_out.p90 < 1
    assert fit.whole_shapes.n == len(wrong) - excluded.sum()


def test_few_rows_are_all_fitted_and_scored_one_left_out() -> None:
    form = CASES["all-reduce"].form
    sizes = 2.0 ** np.arange(13, 28)
    rows = pd.DataFrame({"mode": "graph", "gpus": 8, "bytes": sizes, "seconds": form.seconds(H100, sizes)})
    (only,) = all_reduce.jobs(H100, rows)
    fit = only.fitted()
    assert not only.is_split
    assert fit.held_out.n == fit.whole_shapes.n == 15
    assert fit.held_out.mape < 2


def test_errors_by_hand() -> None:
    errors = Errors.of([1.1, 0.8, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0])
    assert errors == Errors(mdape=5.0, mape=7.5, p90=17.0, bias=-2.5, n=4)
    assert str(errors) == "5.0 / 7.5 / 17.0 / -2.5"
    assert Errors.mean([errors, dataclasses.replace(errors, mdape=7.0)]).mdape == 6.0
