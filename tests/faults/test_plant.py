"""The tests catch every planted fault."""

from __future__ import annotations

from pathlib import Path
from shutil import copy

import pytest

from tests.faults.faults import FAULTS, Fault
from tests.faults.plant import ROOT, judge


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_every_fault_still_finds_its_place(fault: Fault, tmp_path: Path) -> None:
    planted = tmp_path / fault.file
    planted.parent.mkdir(parents=True)
    copy(ROOT / fault.file, planted)
    fault.plant(tmp_path)
    compile(planted.read_text(encoding="utf-8"), fault.file, "exec")


@pytest.mark.parametrize("source", ["b = 1", "a = a"])
def test_a_fault_without_its_one_place_is_refused(source: str, tmp_path: Path) -> None:
    (tmp_path / "file.py").write_text(source, encoding="utf-8")
    with pytest.raises(ValueError, match="not once"):
        Fault("a becomes c", "file.py", "a", "c").plant(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_every_fault_is_caught_within_a_minute(fault: Fault) -> None:
    assert judge(fault).caught_by


@pytest.mark.slow
def test_without_a_fault_nothing_is_caught() -> None:
    assert not judge(None, limit_s=600.0).caught_by
