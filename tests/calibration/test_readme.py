"""The tables of calibration/README.md are those that the commands print."""

from calibration.__main__ import CALIBRATION
from calibration.conf import CONF
from calibration.independent import findings
from calibration.power import power_table
from calibration.tables import error_table, independent_table, projection_table
from calibration.terms import term_table
from calibration.transfer import transfer_table
from tests.shared import ROOT, shared_data

GROUPS = ("engine_overhead", "board_power", "transfer_overhead")
README = (ROOT / "calibration" / "README.md").read_text()


def test_errors_of_all_profiles() -> None:
    for table in (error_table(CALIBRATION), projection_table(CALIBRATION)):
        assert "\n".join(table) in README


def test_errors_on_independent_tables() -> None:
    assert "\n".join(independent_table(findings(shared_data("kernels"), CALIBRATION))) in README


def test_terms_of_measured_runs() -> None:
    files = [
        path
        for group in GROUPS
        for path in sorted((CONF / group).glob("*.yaml"))
        if "provenance:" in path.read_text()
    ]
    assert len(files) == 5
    assert [line for line in term_table(files) if line not in README] == []


def test_errors_on_measured_runs() -> None:
    data = shared_data("serving").parent
    for table in (power_table(data), transfer_table(data)):
        assert "\n".join(table) in README
