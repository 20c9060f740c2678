"""The tables of what engines alone have served."""

from __future__ import annotations

from servesim.results.records import Records
from tests.serving import Run


def tables_of(run: Run) -> Records:
    """Return the closed tables of a run."""
    made = Records(run.service.pools())
    made.requests.extend(run.log.requests)
    made.steps.extend(run.log.steps)
    made.gaps.extend(run.log.gaps)
    made.close()
    return made
