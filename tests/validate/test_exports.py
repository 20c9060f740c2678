"""What servesim exports as other tools' results is read back, and agrees with the run that it is of."""

from __future__ import annotations

from pathlib import Path

import pytest

from servesim.cli import main
from servesim.results.result import Result
from servesim.validate.compare import compare
from servesim.validate.readers import read
from servesim.validate.replay import replay
from tests.validate.runs import OVERRIDES, served


@pytest.fixture(scope="module")
def result() -> Result:
    return served()


@pytest.fixture(scope="module")
def exported(result: Result, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run with all its exports."""
    folder = tmp_path_factory.mktemp("run")
    result.save(folder)
    for form in ("vllm", "vllm-detailed", "aiperf"):
        assert main(["export", str(folder), "--to", form]) == 0
    return folder


@pytest.mark.parametrize("name", ["vllm_detailed.json", "aiperf/profile_export.jsonl"])
def test_an_exported_run_agrees_with_its_replay(exported: Path, name: str) -> None:
    measured = read(exported / name)
    assert measured.requests == 120
    table = compare(measured, replay(measured, OVERRIDES)).table()
    latencies = table[table.metric.isin(["ttft", "tpot", "e2e"])]
    assert len(latencies) == 12
    assert latencies.error.abs().max() < 1e-5


@pytest.mark.parametrize(
    ("name", "rounding"),
    [
        ("vllm.json", 1e-9),
        ("aiperf/profile_export_aiperf.json", 1e-9),
        ("aiperf/profile_export_aiperf.csv", 0.01),
    ],
)
def test_an_exported_summary_has_the_figures_of_the_run(
    result: Result, exported: Path, name: str, rounding: float
) -> None:
    measured = read(exported / name)
    assert measured.requests == 120
    table = compare(measured, result).table()
    latencies = table[table.metric.isin(["ttft", "tpot", "e2e"])]
    assert len(latencies) >= 6
    assert latencies.error.abs().max() < rounding
