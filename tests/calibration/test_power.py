"""The weights of board power: found again from made runs, and as good as they are said to be."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from calibration.conf import CONF, gpu_named
from calibration.power import (
    GPU,
    HARDWARE,
    HELD_OUT,
    LONGEST_PROMPT,
    STATIC_BATCHES,
    Fit,
    Phases,
    fit_power,
    static_batches,
)
from calibration.sources.tidy import SourceError
from servesim.cost.power import BoardPower
from servesim.results.usage import Usage
from tests.results.made import pool
from tests.shared import shared_data


def made(weights: BoardPower) -> pd.DataFrame:
    """Return runs whose mean power is what the model says with these weights."""
    points = pd.DataFrame(
        [
            {
                "tensor_parallel": size,
                "prompt_size": prompt,
                "batch_size": batch,
                "token_size": 128,
                "prompt_s": 2e-3 * prompt * batch / size,
                "token_s": 0.08 / size,
            }
            for size in (2, 4, 8)
            for prompt in (256, 1024)
            for batch in (1, 16, 64)
        ]
    )
    return points.assign(power_w=Phases.of(points).power_w(weights))


def write(folder: Path, **columns: object) -> Path:
    """Write a file of runs below a folder of data, and return the folder."""
    row = {
        "hardware": HARDWARE,
        "tensor_parallel": 2,
        "prompt_size": 128,
        "batch_size": 1,
        "token_size": 128,
        "prompt_time": 80.0,
        "token_time": 50.0,
        "average_power": 0.5,
    }
    path = folder / STATIC_BATCHES
    path.parent.mkdir(parents=True)
    pd.DataFrame({**row, **columns}).to_csv(path, index=False)
    return folder


def test_known_weights_are_found_again() -> None:
    fit = Fit.of(made(BoardPower("", 2.5, 1.2)), HELD_OUT)
    assert fit.weights.compute_weight == pytest.approx(2.5, rel=0.01)
    assert fit.weights.bandwidth_weight == pytest.approx(1.2, rel=0.01)
    assert fit.errors(held_out=True).mape < 0.1
    assert fit.errors(held_out=True, weights_of_1=True).bias < -3


def test_weights_do_not_depend_on_what_is_held_out() -> None:
    points = made(BoardPower("", 1.5, 0.8))
    points.loc[points.tensor_parallel == HELD_OUT, "power_w"] *= 0.5
    assert Fit.of(points, HELD_OUT).weights.bandwidth_weight == pytest.approx(0.8, rel=0.01)


def test_a_run_that_keeps_all_gpus_at_their_peaks_draws_the_limit() -> None:
    points = made(BoardPower()).assign(prompt_s=1e-4, token_s=1e-4)
    limit_w = gpu_named(GPU).max_w
    assert Phases.of(points).power_w(BoardPower()).tolist() == pytest.approx([limit_w] * len(points))


def test_the_simulator_has_the_same_energy_for_the_same_work() -> None:
    """Of one run at TP 2: its two phases as two leaps of a replica."""
    points, weights, gpu = made(BoardPower()).head(1), BoardPower("", 1.7, 1.1), gpu_named(GPU)
    phases = Phases.of(points)
    used = Usage(pool(gpu=gpu), weights, gpu.bf16_flops_per_s)
    seconds = phases.seconds[0]
    assert used.pool.tensor_parallel_size == points.tensor_parallel[0] == 2
    flops = phases.compute[0] * seconds * 2 * gpu.bf16_flops_per_s
    hbm_bytes = phases.bandwidth[0] * seconds * 2 * gpu.hbm_bytes_per_s
    used.add(seconds, np.ones(2), flops, hbm_bytes, np.zeros(2))
    mean_w = used.joules(seconds.sum()) / (2 * seconds.sum())
    assert mean_w == pytest.approx(phases.power_w(weights)[0])


def test_shares_by_hand() -> None:
    """TP 2, one prompt of 1,024 tokens in 1 s: 2 x 68.7e9 parameters a token, and the weights once a step.

    The layers have 68.45e9 parameters and the LM head, of one row, 0.26e9, all in 2 bytes; attention adds
    a percent.
    """
    points = made(BoardPower()).query("tensor_parallel == 2 and prompt_size == 1024 and batch_size == 1")
    phases = Phases.of(points.assign(prompt_s=1.0, token_s=0.1))
    assert phases.compute[0, 0] == pytest.approx(2 * 68.45e9 * 1024 / (2 * 312e12), rel=0.015)
    assert phases.bandwidth[0, 1] == pytest.approx(2 * 68.7e9 / (2 * 2.039e12) / 0.1, rel=0.01)
    assert phases.seconds[0].tolist() == pytest.approx([1.0, 127 * 0.1])


def test_repetitions_are_one_run_and_what_was_not_measured_is_none(tmp_path: Path) -> None:
    data = write(
        tmp_path,
        tensor_parallel=[2, 2, 2, 2, 2, 2, 4],
        prompt_size=[128, 128, 128, 256, 2 * LONGEST_PROMPT, 128, 128],
        prompt_time=[80.0, 90.0, 85.0, 100.0, 100.0, 80.0, 50.0],
        average_power=[0.5, 0.5, 0.5, 0.0, 0.5, 0.5, 0.4],
        hardware=[HARDWARE] * 5 + ["h100-80gb", HARDWARE],
    )
    points = static_batches(data)
    assert points.tensor_parallel.tolist() == [2, 4]
    assert points.prompt_s.tolist() == [0.085, 0.05]
    assert points.power_w.tolist() == [200.0, 160.0]


def test_a_file_that_is_missing_or_lacks_what_is_needed_is_told(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="there is no such file"):
        static_batches(tmp_path)
    path = write(tmp_path, batch_size=[1]) / STATIC_BATCHES
    with pytest.raises(SourceError, match="two tensor parallel sizes or more"):
        static_batches(tmp_path)
    pd.read_csv(path).drop(columns="average_power").to_csv(path, index=False)
    with pytest.raises(SourceError, match="columns average_power are missing"):
        static_batches(tmp_path)


def test_held_out_runs_are_predicted() -> None:
    """Three times as well as by weights of 1."""
    points = static_batches(shared_data(*STATIC_BATCHES.parts).parents[1])
    fit = Fit.of(points, HELD_OUT)
    assert len(points) == 27
    assert fit.errors(held_out=True).mape <= 6
    assert 3 * fit.errors(held_out=True).mape < fit.errors(held_out=True, weights_of_1=True).mape
    assert fit.errors(held_out=False).mape < 10


def test_refitting_gives_what_is_shipped(tmp_path: Path) -> None:
    (path,) = fit_power(shared_data(*STATIC_BATCHES.parts).parents[1], tmp_path)
    fitted, shipped = (
        yaml.safe_load((folder / path.name).read_text()) for folder in (tmp_path, CONF / "board_power")
    )
    for name in ("compute_weight", "bandwidth_weight"):
        assert fitted[name] == pytest.approx(shipped[name], rel=0.005)
    for part in ("fitted", "held_out", "held_out_weights_of_1"):
        assert fitted["provenance"][part] == pytest.approx(shipped["provenance"][part], abs=0.11)
