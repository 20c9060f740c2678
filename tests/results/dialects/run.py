"""A run of four requests on one replica that every dialect can be worked out for with a pencil.

request   sent   input   tokens at (s)                    gaps (s)
0         0.0    10      1.0, 1.5, 2.5, 2.75, 3.25        0.5, 1.0, 0.25, 0.5
1         0.5    20      2.5, 2.75, 3.25                  0.25, 0.5
2         2.0    99      (dropped)
3         3.0     4      3.75
"""

from __future__ import annotations

from typing import Any

from servesim.engine.log import DROPPED, PROMPT_TOO_LONG
from servesim.results.dialects.known import DIALECTS
from servesim.results.dialects.sample import Sample
from servesim.results.records import Records
from servesim.results.slo import Slo
from tests.results.made import records, request, step, waiting

DURATION_S = 3.75
SLO = Slo(ttft_s=1.0, tpot_s=0.375)

STEPS = [
    step(0.0, 1.0, decodes=0, prefill_tokens=10),
    step(1.0, 0.5),
    step(1.5, 1.0, sequences=2, prefill_tokens=20),
    step(2.5, 0.25, increment_s=0.25, steps=2, sequences=2, decodes=2),
    step(3.25, 0.5, decodes=0, prefill_tokens=4),
]
REQUESTS = [
    waiting(2.0, request_id=2, input_tokens=99, status=DROPPED, reason=PROMPT_TOO_LONG),
    request(0.5, 2.5, 3.25, request_id=1, input_tokens=20, output_tokens=3),
    request(0.0, 1.0, 3.25, request_id=0, input_tokens=10, output_tokens=5),
    request(3.0, 3.75, 3.75, request_id=3, input_tokens=4, output_tokens=1),
]


def small() -> Records:
    """Return the tables of the run."""
    return records(REQUESTS, STEPS)


def sample_of(made: Records, duration_s: float = DURATION_S, slo: Slo = SLO, **gpus: int) -> Sample:
    """Return the sample of tables; without other pools, of one of two GPUs."""
    return Sample.of(made, duration_s, slo, gpus or {"serve": 2})


def values(dialect: str, sample: Sample | None = None) -> dict[str, Any]:
    """Return the metrics of a sample, or of the small run, in a dialect."""
    found: dict[str, Any] = DIALECTS[dialect].section(sample or sample_of(small()))["values"]
    return found
