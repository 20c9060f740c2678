"""Sweeps and runs of a folder, as the dashboard sees them."""

from pathlib import Path

import pytest

from servesim import ConfigError, load, run, sweep
from servesim.report.dashboard.loaded import load_folder
from servesim.report.dashboard.rescore import ATTAINMENT, GOOD, LEAST, MOST, Judge, judged

SMALL = ("calibration=roofline", "workload.requests=80", "workload.arrivals.rate_rps=9")


def test_sweeps_and_runs_are_found_at_any_depth(tmp_path: Path) -> None:
    table = sweep(SMALL, ["cluster.replicas=1,2"], folder=tmp_path / "studies" / "one", n_jobs=1)
    for name in ("first", "second"):
        run(load(*SMALL)).save(tmp_path / "runs" / name)
    found = load_folder(tmp_path)
    assert list(found) == ["studies/one", "runs"]
    assert found["studies/one"].sweep.table.equals(table)
    assert found["studies/one"].sweep.same == SMALL
    assert found["runs"].sweep.table.variant.tolist() == ["runs/first", "runs/second"]
    assert list(load_folder(tmp_path / "studies" / "one")) == ["one"]


@pytest.mark.parametrize("more", [(), ("steady=true",), ("horizon_s=4", "steady=true")])
@pytest.mark.parametrize("slo", [{"ttft_s": 0.5, "tpot_s": 0.05}, {"ttft_s": 0.05, "tpot_s": 0.018}])
def test_a_run_is_judged_as_it_would_judge_itself(
    more: tuple[str, ...], slo: dict[str, float], tmp_path: Path
) -> None:
    run(load(*SMALL, *more)).save(tmp_path)
    loaded = load_folder(tmp_path)["runs"]
    again = judged(loaded.sweep.table, Judge(slo, 0.99), loaded.requests).iloc[0]
    expected = run(load(*SMALL, *more, *(f"slo.{name}={limit}" for name, limit in slo.items()))).summary[
        "goodput"
    ]
    assert again[ATTAINMENT + LEAST] == again[ATTAINMENT + MOST] == pytest.approx(expected["attainment"])
    assert again[GOOD] == pytest.approx(expected["requests_per_s"])


@pytest.mark.parametrize("said", ["{}", "[1]", "null", '{"scenario": 3}', "{", "\\xff"])
def test_what_cannot_be_read_is_left_out_beside_what_can(said: str, tmp_path: Path) -> None:
    for name in ("good", "odd"):
        run(load(*SMALL)).save(tmp_path / name)
    (tmp_path / "odd" / "summary.json").write_text(said)
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "sweep.parquet").write_bytes(
        (tmp_path / "good" / "requests.parquet").read_bytes()
    )
    told: list[str] = []
    found = load_folder(tmp_path, lambda problem: told.append(problem.path))
    assert found["runs"].sweep.table.variant.tolist() == ["good"]
    assert {Path(path).parent.name for path in told} == {"odd", "foreign"}


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "sweep.parquet").write_text("no table")
    with pytest.raises(ConfigError, match="is no table of a sweep"):
        load_folder(tmp_path)
    with pytest.raises(ConfigError, match="there is no such folder"):
        load_folder(tmp_path / "nowhere")
