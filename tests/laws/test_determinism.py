"""One seed gives the same bytes, in this process and in any other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path

import pytest

import servesim
from servesim.cluster.router import Random
from servesim.scenario import Scenario
from servesim.workload.arrivals import ClosedLoop, Constant, Gamma, Poisson
from servesim.workload.lengths import Geometric, Lognormal
from servesim.workload.schedule import Schedule
from servesim.workload.synthetic import Synthetic
from servesim.workload.trace import Trace
from tests.shared import ROOT

SCHEDULERS = ("continuous", "static", "disaggregated")
LENGTHS = Lognormal(input=800.0, output=60.0)
WORKLOADS = {
    "poisson": Synthetic(Poisson(6.0), LENGTHS, requests=60),
    "gamma": Synthetic(Gamma(6.0, burstiness=0.3), LENGTHS, requests=60),
    "constant": Synthetic(Constant(6.0), Geometric(input=800.0, output=60.0), requests=60),
    "schedule": Synthetic(Schedule(rates=((0.0, 2.0), (5.0, 9.0)), period_s=20.0), LENGTHS, duration_s=12.0),
    "closed loop": Synthetic(ClosedLoop(concurrency=12), LENGTHS, requests=60),
}


@cache
def default(scheduler: str) -> Scenario:
    """Return the default scenario of a scheduler, on the roofline, which takes no time to set up."""
    return servesim.load(f"scheduler={scheduler}", "seed=7", "calibration=roofline")


def scenarios(folder: Path) -> dict[str, Scenario]:
    """Return every scheduler with every workload, with a trace in ``folder``, and cut, at random replicas."""
    workloads = {**WORKLOADS, "trace": Trace(str(folder / "trace.csv"))}
    found = {}
    for scheduler in SCHEDULERS:
        base = default(scheduler)
        for name, workload in workloads.items():
            found[f"{scheduler}, {name}"] = replace(base, workload=workload)
        cut = replace(base, workload=WORKLOADS["poisson"], router=Random(), horizon_s=5.0, steady=True)
        found[f"{scheduler}, cut"] = cut
    return found


def digests(folder: Path) -> dict[str, list[str]]:
    """Return a digest of each file that each scenario leaves behind."""
    return {name: list(files(scenario, folder / name)) for name, scenario in scenarios(folder).items()}


def files(scenario: Scenario, folder: Path) -> Iterator[str]:
    """Yield the digests of a run's files; what the simulator says of itself is not part of the result."""
    servesim.run(scenario).save(folder)
    for name in ("requests.parquet", "steps.parquet", "gaps.parquet", "config.yaml"):
        yield sha256((folder / name).read_bytes()).hexdigest()
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    assert summary.pop("simulator")
    yield sha256(json.dumps(summary).encode()).hexdigest()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a trace in it."""
    folder = tmp_path_factory.mktemp("runs")
    rows = [
        f"2023-11-16 18:15:{i // 4:02d}.{i % 4}000000,{100 + 37 * i % 900},{1 + 13 * i % 70}"
        for i in range(60)
    ]
    text = "\r\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *rows]) + "\r\n"
    (folder / "trace.csv").write_text(text, encoding="utf-8", newline="")
    return folder


@pytest.fixture(scope="module")
def here(folder: Path) -> dict[str, list[str]]:
    """The digests, as this process finds them."""
    return digests(folder)


def test_same_bytes_twice_in_one_process(folder: Path, here: dict[str, list[str]]) -> None:
    assert digests(folder) == here


def test_same_bytes_in_another_process(folder: Path, here: dict[str, list[str]]) -> None:
    """Another process has other hash seeds, and other memory addresses to order by."""
    command = [sys.executable, "-m", "tests.laws.test_determinism", str(folder)]
    environment = os.environ | {"PYTHONHASHSEED": "12345", "PYTHONPATH": str(ROOT)}
    other = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    assert json.loads(other.stdout) == here


def test_digests_would_tell(folder: Path, here: dict[str, list[str]]) -> None:
    """No two workloads leave the same requests behind, nor two seeds."""
    for scheduler in SCHEDULERS:
        assert len({here[f"{scheduler}, {name}"][0] for name in WORKLOADS}) == len(WORKLOADS)
    scenario = replace(default("continuous"), workload=WORKLOADS["poisson"])
    seeds = [next(files(replace(scenario, seed=seed), folder / "seed")) for seed in range(3)]
    assert len(set(seeds)) == 3


if __name__ == "__main__":
    sys.stdout.write(json.dumps(digests(Path(sys.argv[1]))))
