"""The tables of calibration/README.md are those that the commands print."""

from calibration.__main__ import CALIBRATION
from calibration.independent import findings
from calibration.tables import error_table, independent_table, projection_table
from tests.shared import ROOT, shared_data

README = (ROOT / "calibration" / "README.md").read_text()


def test_errors_of_all_profiles() -> None:
    for table in (error_table(CALIBRATION), projection_table(CALIBRATION)):
        assert "\n".join(table) in README


def test_errors_on_independent_tables() -> None:
    assert "\n".join(independent_table(findings(shared_data("kernels"), CALIBRATION))) in README
