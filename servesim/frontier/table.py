"""The answers of a plan as rows and as files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from servesim.frontier.plan import Answer, Question
from servesim.results.summary import plain

#: Columns that hold whole numbers, or nothing.
_WHOLE = ("rank", "replicas", "prefill_replicas", "decode_replicas", "judged_requests")


def row(answer: Answer, question: Question, rank: int | None) -> dict[str, Any]:
    """Return one answer as plain values, None where there is nothing to say.

    Replicas, GPUs and prices of a candidate that was not simulated are the least that the bounds allow it.
    """
    candidate, verdict, shape = answer.candidate, answer.verdict, answer.shape
    split = candidate.split
    figures = {
        "rank": rank,
        "fate": answer.fate,
        "detail": answer.outlook.detail or None,
        "gpu": candidate.gpu,
        "tensor_parallel_size": candidate.tensor_parallel_size,
        "scheduler": candidate.scheduler,
        "replicas": None if split else shape[0],
        "prefill_replicas": shape[0] if split else None,
        "decode_replicas": shape[1] if split else None,
        "gpus": answer.gpus,
        "usd_per_hour": answer.usd_per_hour,
        "usd_per_hour_with_spare": answer.usd_per_hour_with_spare,
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
