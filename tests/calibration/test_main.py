"""The verbs: what they print, and what they say where something is missing."""

from pathlib import Path

import pytest

from calibration.__main__ import CALIBRATION, main
from calibration.independent import findings
from calibration.sources import wheel
from tests.calibration.packages import installed
from tests.shared import shared_data

#: Largest bias (%) of the H100 profile on the projections that others timed, by rows.
MOST_BIAS = {"m 1 to 64": 5, "m 65 to 512": 20, "m from 513": 20}


def test_errors_prints_a_row_per_fit(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["errors"]) == 0
    printed = capsys.readouterr().out
    assert "| h100-sxm-vllm | gemm | bf16 | 23,902 |" in printed
    assert "| profile | format | llama3.1-8b | llama3.1-70b | qwen3-32b |" in printed


@pytest.mark.parametrize("verb", ["fit", "report"])
def test_without_the_package_a_verb_says_how_to_get_it(
    verb: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(wheel, "PACKAGE", "a-package-that-nobody-has-installed")
    assert main([verb, "--out", str(tmp_path)]) == 1
    assert "pip install 'servesim[calibration]'" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_report_writes_a_page_per_profile(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    installed()
    assert main(["report", "--gpu", "l40s", "--engine", "vllm", "--out", str(tmp_path / "pages")]) == 0
    (page,) = (tmp_path / "pages").iterdir()
    assert capsys.readouterr().out == f"{page}\n"
    assert "Kernel times of vllm 0.24.0 on l40s" in page.read_text()


def test_check_prints_a_row_per_part_of_an_independent_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(shared_data("kernels"))]) == 0
    printed = capsys.readouterr().out
    assert "| h100-sxm-vllm | vidur_h100_llama2_70b_mlp | gemm | m from 513 | 3,072 |" in printed
    assert "behind a prefix" in printed


def test_projections_that_others_timed_are_near() -> None:
    products = [found for found in findings(shared_data("kernels"), CALIBRATION) if found.operation == "gemm"]
    of_the_h100 = [found for found in products if found.profile == "h100-sxm-vllm"]
    assert len(of_the_h100) == 6
    for found in of_the_h100:
        assert abs(found.errors.bias) < MOST_BIAS[found.part]
        assert found.errors.mape < found.datasheet.mape
