"""The engine terms: as good as they are said to be, and what is shipped is what the runs want."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from calibration.conf import CONF
from calibration.overhead import BATCHES, ENGINES, Engine, batches, fit_overheads, runs_of
from calibration.sources.tidy import SourceError
from tests.shared import shared_data

VLLM, TRTLLM, OLD_VLLM = ENGINES
TERMS = ("step_s", "sequence_s", "prefill_factor")


@pytest.mark.parametrize(
    ("engine", "bar"),
    [(VLLM, 4.5), (TRTLLM, 6.5), (OLD_VLLM, 3)],
    ids=lambda each: str(getattr(each, "name", "")),
)
def test_held_out_runs_are_predicted(engine: Engine, bar: float) -> None:
    runs, _, _ = runs_of(engine, shared_data("serving").parent, jobs=1)
    errors = (runs.simulate(runs.overhead) / runs.measured - 1)[runs.held_out]
    assert len(errors) >= 6
    assert 100 * np.abs(errors).mean() <= bar


def test_the_shipped_terms_say_what_they_are_off() -> None:
    for engine in ENGINES:
        said = yaml.safe_load((CONF / "engine_overhead" / f"{engine.name}.yaml").read_text())
        told = said["provenance"]
        assert told["held_out"]["mape"] < told["held_out_kernels_alone"]["mape"]
        for name, (low, high) in told["intervals"].items():
            assert low <= said[name] <= high


def test_batches_leave_out_what_their_kv_does_not_hold() -> None:
    points = batches(shared_data("serving").parent)
    kv_tokens = 334_944
    assert all(point.concurrency * (point.isl + point.osl) <= kv_tokens for point in points.points)
    assert len(points.points) == 31
    assert {point.line for point in points.points} <= set(range(2, 35))


def test_where_there_are_no_runs_that_is_said(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="there is no such file"):
        fit_overheads(tmp_path, tmp_path)
    with pytest.raises(SourceError, match=BATCHES.name):
        replace(OLD_VLLM).read(tmp_path)


@pytest.mark.slow
def test_refitting_gives_what_is_shipped(tmp_path: Path) -> None:
    for path in fit_overheads(shared_data("serving").parent, tmp_path):
        fitted, shipped = (
            yaml.safe_load(one.read_text()) for one in (path, CONF / "engine_overhead" / path.name)
        )
        assert [fitted[name] for name in TERMS] == pytest.approx([shipped[name] for name in TERMS], rel=0.005)
        for name in ("model", "gpu", "ranges"):
            assert fitted[name] == shipped[name]
