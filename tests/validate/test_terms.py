"""Terms of an engine: fitted runs and held-out ones kept apart, and a file that is an option."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from servesim import load
from servesim.check import ConfigError
from servesim.cost.overhead import EngineOverhead
from servesim.validate.fit import TERMS
from servesim.validate.measured import Measured
from servesim.validate.points import Points
from servesim.validate.replay import base, simulated
from servesim.validate.terms import Runs, fit_terms, of_points, of_runs, with_terms
from servesim.validate.terms_file import write_terms

ONE = ("model=llama3.1-8b", "cluster.replicas=1", "cluster.tensor_parallel_size=1")
TPOT = ("tpot", "mean")
TRUE = {"step_s": 2e-3, "sequence_s": 3e-5, "prefill_factor": 1.3}
START = EngineOverhead("start", "vllm", "1", step_s=1e-3, sequence_s=1e-5, prefill_factor=1.0)
SEQUENCES = np.array([1.0, 4, 16, 64, 128, 256])
PROMPTS_S = np.array([0.0, 2e-3, 1e-3, 4e-3, 0.0, 8e-3])


def step_s(overhead: EngineOverhead) -> np.ndarray:
    """Return steps of 10 ms of decode kernels with the terms of an engine."""
    return 10e-3 + overhead.step_s + overhead.sequence_s * SEQUENCES + overhead.prefill_factor * PROMPTS_S


def made(held_out: tuple[int, ...] = (), measured: np.ndarray | None = None) -> Runs:
    """Return six runs whose figures follow a formula."""
    mask = np.isin(np.arange(len(SEQUENCES)), held_out)
    known = step_s(with_terms(START, TRUE)) if measured is None else measured
    return Runs([TPOT], known, mask, START, step_s, (1, 256))


def test_held_out_runs_have_no_part_in_the_fit() -> None:
    odd = step_s(with_terms(START, TRUE))
    odd[5] *= 4
    found = fit_terms(made((5,), odd), "x")
    assert found.fit.values == pytest.approx(TRUE, rel=0.02)
    assert (found.fitted.n, found.held_out.n) == (5, 1)
    assert found.fitted.mape < 1e-3
    assert found.held_out.mape == pytest.approx(0.75, abs=0.01)


def test_the_scores_tell_fitted_terms_from_those_before_and_from_none() -> None:
    found = fit_terms(made((1, 3)), "x")
    assert found.held_out.mape < found.held_out_before.mape < found.held_out_kernels_alone.mape
    assert found.held_out_kernels_alone.bias < 0


def test_runs_without_the_figure_are_left_out_and_too_few_are_refused() -> None:
    some = step_s(with_terms(START, TRUE))
    some[0] = np.nan
    assert fit_terms(made((), some), "x").fitted.n == 5
    with pytest.raises(ConfigError, match="3 runs are left to fit 3 terms to"):
        fit_terms(made((0, 1, 2)), "x")


def test_measured_runs_are_replayed_under_other_terms() -> None:
    scenario = replace(base(ONE), engine_overhead=START)
    truth = replace(scenario, engine_overhead=with_terms(START, TRUE))
    runs = [
        Measured(
            f"run qps={rate}",
            "made",
            np.arange(12) / rate,
            np.full(12, prompt),
            np.full(12, 20),
            np.full(12, np.nan),
            np.full(12, np.nan),
            labels={"qps": str(rate)},
        )
        for rate, prompt in ((1, 16), (4, 2000), (20, 700), (60, 300), (200, 50))
    ]
    told = simulated(truth, runs)
    measured = [
        replace(run, ttft_s=found.run.ttft_s, e2e_s=found.run.e2e_s)
        for run, found in zip(runs, told, strict=True)
    ]
    found = fit_terms(of_runs(measured, scenario, [TPOT], {"qps": "20"}), "x")
    assert (found.fitted.n, found.held_out.n) == (4, 1)
    assert found.fit.values["step_s"] == pytest.approx(TRUE["step_s"], rel=0.1)
    assert found.held_out.mape < 0.02 < found.held_out_kernels_alone.mape


def test_an_engine_is_needed_to_start_from() -> None:
    scenario = replace(base(ONE), engine_overhead=None)
    with pytest.raises(ConfigError, match="must name an engine"):
        of_runs([], scenario, [TPOT], {})


def test_the_file_is_an_option_that_says_what_was_done(tmp_path: Path) -> None:
    scenario = load(*ONE)
    found = fit_terms(made((1,)), "mine")
    path = tmp_path / "engine_overhead" / "mine.yaml"
    write_terms(found, scenario, "runs.csv", "qps=4 held out, the others fitted", path)
    loaded = load(*ONE, "engine_overhead=mine", config_dir=tmp_path).engine_overhead
    assert loaded is not None
    assert {name: getattr(loaded, name) for name in TERMS} == pytest.approx(TRUE, rel=0.02)
    assert (loaded.model, loaded.gpu, loaded.most_sequences) == ("llama3.1-8b", "h100-sxm", 256)
    told = yaml.safe_load(path.read_text())["provenance"]
    assert told["split"] == "qps=4 held out, the others fitted"
    assert told["runs"] == "5 of runs.csv, fitted on tpot.mean"
    for name, (low, high) in told["intervals"].items():
        assert low <= getattr(loaded, name) <= high
    assert told["held_out"]["mape"] < told["held_out_kernels_alone"]["mape"]


def test_points_are_told_apart_by_what_they_have() -> None:
    with pytest.raises(ConfigError, match="backend"):
        of_points(Points("x", [], ()), {}, [TPOT], {"backend": "vllm"})
