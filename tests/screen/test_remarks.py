"""What there is to say below a table of runs."""

from typing import Any

import pytest

from servesim.screen import remarks
from servesim.screen.notes import Caveat


def test_of_several_remedies_the_one_that_serves_all_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def caveats(summary: dict[str, Any]) -> list[Caveat]:
        return [Caveat("", "too short", f"workload.duration_s={summary['latency']} steady=true")]

    monkeypatch.setattr(remarks, "caveats", caveats)
    found = {str(place): {"offload": None, "latency": needed} for place, needed in enumerate((90, 1100, 700))}
    assert [*remarks.remarks(found)] == ["all runs: too short: workload.duration_s=1100 steady=true"]
