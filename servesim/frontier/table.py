"""The answers of a plan as rows and as files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from servesim.frontier.fates import meaning
from servesim.frontier.plan import Answer, Question
from servesim.results.summary import plain

#: Columns that hold whole numbers, or nothing.
_WHOLE = ("rank", "replicas", "prefill_replicas", "decode_replicas", "judged_requests", "gpus")


def row(answer: Answer, question: Question, rank: int | None) -> dict[str, Any]:
    """Return one answer as plain values, None where there is nothing to say.

    ``meaning`` says the fate in words. A candidate that was not simulated is no offer: it has no replicas,
    GPUs or prices.
    """
    candidate, verdict, shape = answer.candidate, answer.verdict, answer.shape
    split, tried = candidate.split, verdict is not None
    allowed = f"{question.max_gpus:,} GPUs or {question.max_replicas:,} replicas"
    figures = {
        "rank": rank,
        "fate": answer.fate,
        "meaning": answer.fate and meaning(answer.fate, question.top, allowed, _limit(answer)),
        "detail": answer.outlook.detail or None,
        "gpu": candidate.gpu,
        "tensor_parallel_size": candidate.tensor_parallel_size,
        "scheduler": candidate.scheduler,
        "replicas": shape[0] if tried and not split else None,
        "prefill_replicas": shape[0] if tried and split else None,
        "decode_replicas": shape[1] if tried and split else None,
        "gpus": answer.gpus if tried else None,
        "usd_per_hour": _dollars(answer.usd_per_hour) if tried else None,
        "usd_per_hour_with_spare": _dollars(answer.usd_per_hour_with_spare) if tried else None,
        "usd_per_million_output_tokens": answer.usd_per_million_output_tokens,
        "attainment": verdict and verdict.attainment,
        "attainment_worst_seed": verdict and verdict.worst_seed,
        "judged_requests": verdict and verdict.judged,
        "saturated": verdict and verdict.saturated,
        "clean": verdict and verdict.clean,
        "ttft_p99_s": verdict and verdict.ttft_p99_s,
        "tpot_p99_s": verdict and verdict.tpot_p99_s,
        "headroom": answer.headroom,
        "limited_latency": answer.limit and answer.limit.symptom,
        "limited_by": answer.limit and answer.limit.cause,
        "limited_pool": answer.limit and answer.limit.role,
        "attainable": answer.outlook.attainable if answer.outlook.least else None,
        "runs": answer.runs,
        "command": candidate.command(shape, question.trial) if verdict else None,
    }
    return {name: plain(value) for name, value in figures.items()}


def _limit(answer: Answer) -> str:
    """Return the latency whose limit is out of reach, as it is written."""
    limit = answer.outlook.limit
    return limit.removesuffix("_s").upper() if limit else "the SLO"


def _dollars(amount: float | None) -> float | None:
    """Return a sum of prices without the noise of adding them."""
    return None if amount is None else round(amount, 9)


def rows(answers: Sequence[Answer], question: Question) -> list[dict[str, Any]]:
    """Return all answers as plain values in order; those that meet the objective have a rank from 1 on."""
    return [
        row(answer, question, number if answer.fate == "meets" else None)
        for number, answer in enumerate(answers, start=1)
    ]


def save(answers: Sequence[Answer], question: Question, scenario: Mapping[str, Any], folder: Path) -> None:
    """Write ``plan.parquet``, ``plan.csv`` and ``plan.json`` into ``folder``, which is made if need be.

    ``scenario`` is the resolved configuration of the first candidate; it goes into ``plan.json`` with the
    question and all rows.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found = rows(answers, question)
    frame = pd.DataFrame(found).astype(dict.fromkeys(_WHOLE, "Int64"))
    frame.to_parquet(folder / "plan.parquet", index=False)
    frame.to_csv(folder / "plan.csv", index=False)
    asked = asdict(question) | {"trial": question.trial._asdict()}
    whole = {"question": asked, "scenario": scenario, "answers": found}
    text = json.dumps(whole, indent=2, allow_nan=False)
    (folder / "plan.json").write_text(text + "\n", encoding="utf-8")
