"""The verbs: what they print, and what they say where something is missing."""

from pathlib import Path

import pandas as pd
import pytest
import yaml

from calibration.__main__ import CALIBRATION, main
from calibration.conf import CONF
from calibration.independent import FILES, findings
from calibration.sources import wheel
from calibration.terms import term_table
from calibration.verbs import TERMS
from tests.calibration.packages import installed
from tests.cost.fitted import SAID
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
    assert "pip install -e '.[calibration]'" in capsys.readouterr().err
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


@pytest.mark.parametrize("arguments", [["check", "DIR"], ["errors", "--out", "DIR"]])
def test_an_empty_folder_is_one_error_that_lists_what_is_missing(
    arguments: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / FILES[0]).touch()
    missing = FILES[1:] if "check" in arguments else ["there is no profile"]
    for folder in (tmp_path, tmp_path / "nowhere"):
        assert main([str(folder) if word == "DIR" else word for word in arguments]) == 1
        told = capsys.readouterr().err
        assert str(folder) in told
        assert [name for name in missing if name not in told] == []


def test_a_check_without_profiles_is_an_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["check", str(shared_data("kernels")), "--out", str(tmp_path)]) == 1
    assert "h100-sxm-vllm" in capsys.readouterr().err


def test_projections_that_others_timed_are_near() -> None:
    products = [found for found in findings(shared_data("kernels"), CALIBRATION) if found.operation == "gemm"]
    of_the_h100 = [found for found in products if found.profile == "h100-sxm-vllm"]
    assert len(of_the_h100) == 6
    for found in of_the_h100:
        assert abs(found.errors.bias) < MOST_BIAS[found.part]
        assert found.errors.mape < found.datasheet.mape


@pytest.mark.parametrize(
    "verb", [pytest.param(verb, marks=[pytest.mark.slow] * (verb == "overhead")) for verb in TERMS]
)
def test_terms_are_fitted_written_and_told(
    verb: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / TERMS[verb].group
    assert main([verb, "--data", str(shared_data("serving").parent), "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    written = sorted(out.iterdir())
    assert {path.name for path in written} <= {path.name for path in (CONF / out.name).iterdir()}
    assert [str(path) for path in written if str(path) not in printed] == []
    assert [line for line in term_table(written) if line not in printed] == []


def test_terms_without_the_data_say_what_is_missing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["transfer", "--data", str(tmp_path), "--out", str(tmp_path / "out")]) == 1
    assert "there is no such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("written", "line"),
    [
        (b"a: [", "broken.yaml: is not YAML"),
        (b"\xb3\xff\x00", "broken.yaml: is not YAML"),
        (b"[1]", "broken.yaml: must be keys with values"),
        (b"", "broken.yaml: must be keys with values"),
        (b"kind: profile", "broken.yaml: gemm: is missing"),
        (b"kind: profile\ngemm: [1]", "broken.yaml: gemm = [1]: must be keys with values"),
    ],
)
def test_errors_of_a_folder_with_a_broken_profile_name_it(
    written: bytes, line: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "broken.yaml").write_bytes(written)
    assert main(["errors", "--out", str(tmp_path)]) == 1
    printed, told = capsys.readouterr()
    assert line in told
    assert "Traceback" not in told + printed


def test_a_profile_without_errors_has_no_rows_and_wrong_ones_are_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    said = {"kind": "profile", **SAID}
    (tmp_path / "made.yaml").write_text(yaml.safe_dump(said))
    assert main(["errors", "--out", str(tmp_path)]) == 0
    (tmp_path / "made.yaml").write_text(yaml.safe_dump(said | {"errors": {"gemm": {"bf16": {"rows": 3}}}}))
    assert main(["errors", "--out", str(tmp_path)]) == 1
    assert "its errors are not as fit writes them" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [[], ["nonsense"], ["errors", "--nonsense"], ["measure", "--budget", "x"], ["check"]]
)
def test_wrong_usage_is_an_error_of_one_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "--help" in line


def test_a_folder_that_cannot_be_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "made.yaml").write_text(yaml.safe_dump({"kind": "profile", **SAID}))
    installed()
    assert main(["report", "--profiles", str(tmp_path), "--out", str(tmp_path / "file" / "x")]) == 1
    assert capsys.readouterr().err == f"{tmp_path / 'file' / 'x'}: Not a directory\n"


def test_a_table_that_cannot_be_read_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "gemm.parquet").write_bytes(b"PAR1 nothing PAR1")
    pd.DataFrame({"x": [1]}).to_parquet(tmp_path / "moe.parquet")
    assert main(["fit", "--measurements", str(tmp_path), "--out", str(tmp_path)]) == 1
    first, *others = capsys.readouterr().err.splitlines()
    assert first.startswith(f"{tmp_path / 'gemm.parquet'}: cannot be read")
    assert any(line.startswith(f"{tmp_path / 'moe.parquet'}: ") for line in others)
