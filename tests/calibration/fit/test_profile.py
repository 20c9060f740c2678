"""The committed profiles: they say where they are from, and a refit gives the same times."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from calibration.conf import gpu_named
from calibration.fit.job import Job
from calibration.fit.profile import OPERATIONS, Profile, fit_profiles, profile_jobs
from calibration.sources.aiconfigurator import VERSIONS
from servesim.check import check
from tests.calibration.packages import installed
from tests.cost.shipped import CONF

PROFILES = sorted(
    path for path in (CONF / "calibration").glob("*.yaml") if "kind: profile" in path.read_text()
)
names = pytest.mark.parametrize("path", PROFILES, ids=[path.stem for path in PROFILES])

#: How far the times of a refit may be from those of the committed profile.
CLOSE = 0.005


def document(path: Path) -> dict[str, Any]:
    return dict(yaml.safe_load(path.read_text()))


def test_there_are_profiles() -> None:
    assert {f"{gpu}-{engine}" for gpu, engine in VERSIONS} >= {path.stem for path in PROFILES}
    assert "h100-sxm-vllm" in {path.stem for path in PROFILES}


@names
def test_a_profile_is_of_the_gpu_that_it_names(path: Path) -> None:
    said = document(path)
    gpu = gpu_named(said["gpu"])
    assert said["name"] == path.stem == f"{said['gpu']}-{said['engine']}"
    assert said["datasheet"] == {name: getattr(gpu, name) for name in said["datasheet"]}


@names
def test_every_fit_has_its_range_errors_and_provenance(path: Path) -> None:
    said = document(path)
    for operation in set(OPERATIONS) & set(said):
        borrowed = operation == "quantise" and said["engine"] == "sglang"
        assert set(said["ranges"].get(operation, ())) == (set() if borrowed else set(said[operation]))
        for name in said[operation]:
            errors = said["errors"][operation][name]
            assert errors["held_out"]["n"] > 0
            assert errors["held_out"]["mape"] < errors["datasheet"]["mape"]
    assert all(len(digest) == 64 for digest in said["provenance"]["tables"].values())


@pytest.mark.parametrize(("engine", "own"), [("vllm", True), ("trtllm", True), ("sglang", False)])
def test_every_fit_of_quantisation_is_written_down(engine: str, own: bool) -> None:
    wheel = installed()
    jobs = [job for job in profile_jobs(wheel, "h100-sxm", engine) if job.operation == "quantise"]
    fits = [job.fitted() for job in jobs]
    said = yaml.safe_load(Profile(gpu_named("h100-sxm"), engine, wheel.version, fits, {}).text())
    committed = document(CONF / "calibration" / f"h100-sxm-{engine}.yaml")
    assert said["quantise"] == committed["quantise"]
    assert said["ranges"].get("quantise") == committed["ranges"].get("quantise")
    assert ("quantise" in said["ranges"]) == own


def times(job: Job, coefficients: dict[str, Any]) -> np.ndarray:
    form = job.build(**{name: coefficients[name] for name in (*job.coefficients, *job.choices[0])})
    check(form)
    return job.predict(form, job.rows)


def assert_refit_agrees(said: dict[str, Any], job: Job) -> None:
    refit, committed = times(job, job.shipped()), times(job, said[job.operation][job.name])
    assert np.abs(refit / committed - 1).max() < CLOSE, (said["name"], job.operation, job.name)


def test_refitting_attention_and_all_reduce_gives_the_committed_times() -> None:
    said, package = document(CONF / "calibration" / "h100-sxm-vllm.yaml"), installed()
    for job in profile_jobs(package, "h100-sxm", "vllm"):
        if job.operation in ("decode_attention", "prefill_attention", "all_reduce", "quantise"):
            assert_refit_agrees(said, job)


@pytest.mark.slow
@names
def test_refitting_everything_gives_the_committed_times(path: Path) -> None:
    said, package = document(path), installed()
    fitted = {(job.operation, job.name): job for job in profile_jobs(package, said["gpu"], said["engine"])}
    assert set(fitted) == {(operation, name) for operation in OPERATIONS for name in said.get(operation, {})}
    for job in fitted.values():
        assert_refit_agrees(said, job)


@pytest.mark.slow
def test_a_profile_is_written_the_same_again() -> None:
    path = CONF / "calibration" / "a100-sxm-80gb-vllm.yaml"
    (profile,) = fit_profiles(installed(), [("a100-sxm-80gb", "vllm")])
    assert profile.text() == path.read_text()


#: Bars on the H100: operation, format, subset (None: all rows), median and mean error in percent.
BARS = [
    ("vllm", "gemm", "bf16", None, 6, 8.5),
    ("vllm", "gemm", "bf16", "llm_shapes", 5, 7),
    ("vllm", "gemm", "fp8", None, 8, 12),
    ("vllm", "gemm", "fp8", "llm_shapes", 5.5, 8),
    ("vllm", "decode_attention", "bf16", None, 3.5, 6),
    ("vllm", "decode_attention", "fp8", None, 3.5, 6),
    ("vllm", "prefill_attention", "bf16", None, 6.5, 9),
    ("vllm", "prefill_attention", "bf16_kv_fp8", None, 6.5, 9),
    ("trtllm", "prefill_attention", "bf16", None, 4, 5),
    ("vllm", "moe", "fp8_block", None, 5.5, 9),
    ("vllm", "moe", "bf16", None, 7.5, 14),
    ("vllm", "moe", "mxfp4", None, 9, 12),
]


@pytest.mark.parametrize(("engine", "operation", "name", "subset", "median", "mean"), BARS)
def test_held_out_errors_on_the_h100(
    engine: str, operation: str, name: str, subset: str | None, median: float, mean: float
) -> None:
    errors = document(CONF / "calibration" / f"h100-sxm-{engine}.yaml")["errors"][operation][name]
    figures = errors["splits"] if subset is None else errors["subsets"][subset]
    assert figures["mdape"] <= median
    assert figures["mape"] <= mean


def test_all_reduce_with_one_size_left_out() -> None:
    errors = document(CONF / "calibration" / "h100-sxm-vllm.yaml")["errors"]["all_reduce"]["pooled"]
    assert errors["whole_shapes"]["mdape"] <= 6
    assert errors["whole_shapes"]["mape"] <= 9


@pytest.mark.parametrize(("dtype", "most"), [("bf16", 6), ("fp8", 7.5)])
def test_the_sum_of_a_layers_projections(dtype: str, most: float) -> None:
    projections = document(CONF / "calibration" / "h100-sxm-vllm.yaml")["projections"][dtype]
    assert all(errors["mape"] <= most for errors in projections.values())
