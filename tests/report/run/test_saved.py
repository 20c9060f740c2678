"""A run read from its folder is the run that was saved."""

from pathlib import Path

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
    with pytest.raises(ConfigError, match="cannot be read"):
        Run.read(tmp_path)
