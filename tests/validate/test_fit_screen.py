"""A fit on the screen: what was simulated, and how far it has come."""

from __future__ import annotations

from pathlib import Path

import pytest

from servesim.cli import main
from tests.validate.runs import write_csv


def test_a_fit_tells_what_was_simulated_and_judges_the_points_of_a_columns_own_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {"tp_size": 1, "conc": users, "input_len": isl, "osl": 4, "tpot_ms": 8.0 + 0.1 * users + isl / 1e3}
        for users in (1, 4, 8)
        for isl in (64, 2000)
    ]
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "points.csv", rows)
    held_out = ["--held-out", "conc=8 input_len=64"]
    fit = ["--fit", *held_out, "--jobs", "1", "--requests-per-user", "2"]
    assert main(["validate", "points.csv", "model=llama3.1-8b", *fit]) == 0
    printed = " ".join(capfd.readouterr().out.split())
    assert "Simulated llama3.1-8b on 1 x h100-sxm: 1 replica of 1 x h100-sxm" in printed
    assert "not given, so taken as gpu=h100-sxm and cluster.replicas=1" in printed
    assert "Fitted to 5 runs of points.csv; conc=8 input_len=64 held out" in printed
