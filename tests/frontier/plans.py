"""Small catalogues and trials for tests of plans."""

from __future__ import annotations

from functools import cache

from servesim.frontier.candidate import Candidate
from servesim.frontier.catalogue import catalogue
from servesim.frontier.plan import Question
from servesim.frontier.traffic import Trial

TRIAL = Trial(600, (0, 1))
SMALL = ("model=llama3.1-8b", "workload/lengths=uniform", "workload.lengths.input=800")
SMALL += ("workload.lengths.output=100", "slo.ttft_s=0.2", "slo.tpot_s=0.03", "slo.attainment=0.95")


@cache
def candidates(
    *overrides: str,
    gpus: tuple[str, ...] = ("h100-sxm", "l40s"),
    schedulers: tuple[str, ...] = ("continuous", "disaggregated"),
    sizes: tuple[int, ...] = (1, 2),
) -> list[Candidate]:
    chosen = {gpu: [f"gpu={gpu}"] for gpu in gpus}
    found, problems = catalogue([*SMALL, *overrides], chosen, schedulers, sizes, None)
    assert not problems
    return found


def question(top: int = 3, max_gpus: int = 24, trial: Trial = TRIAL) -> Question:
    return Question(trial, max_replicas=max_gpus, max_gpus=max_gpus, top=top)
