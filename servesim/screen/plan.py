"""The screen of a plan: the cheapest configurations, and why the others are not among them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from servesim.frontier.fates import FATES
from servesim.frontier.plan import Answer, Question
from servesim.frontier.pruning import LATENCIES
from servesim.results.slo import Slo
from servesim.scenario import Scenario
from servesim.screen.comparison import table_lines
from servesim.screen.figures import counted, money, number, percent
from servesim.screen.words import formats
from servesim.words import listed
from servesim.workload.replay import Replay
from servesim.workload.trace import Trace

_HEADINGS = (
    ("", "", "#"),
    ("", "", "GPU"),
    ("", "", "TP"),
    ("", "", "scheduler"),
    ("", "", "replicas"),
    ("", "", "GPUs"),
    ("", "", "$/h"),
    ("$ per", "M out", "tok"),
    ("", "SLO", "met by"),
    ("TTFT", "p99", "ms"),
    ("TPOT", "p99", "ms"),
    ("", "head-", "room"),
    ("", "", "limited by"),
    ("$/h", "with", "spare"),
)
_WORDS = {1, 3, 12}  # columns of words, to be set from the left


def print_plan(
    scenario: Scenario, answers: Sequence[Answer], question: Question, out: Console, folder: Path | None
) -> None:
    """Print what was asked, the best answers or the nearest, and what became of the others.

    Args:
        scenario: any candidate's, for the model, the traffic and the objective.
        answers: all of them, the best first.
        question: what was allowed, and how it was found out.
        out: where to print.
        folder: where the files of the plan are.

    """
    best = [answer for answer in answers[: question.top] if answer.fate == "meets"]
    notes = dict.fromkeys(note for answer in answers for note in answer.candidate.scenario.notes)
    lines = [*_asked(scenario, question, answers), *notes, ""]
    lines += _ranking(best, out.width) if best else _nearest(scenario, answers[0], question)
    lines += ["", *_others(scenario, answers, best, question)]
    if best:
        lines += ["", "Run the first:", f"  {best[0].candidate.command(best[0].shape, question.trial)}"]
    names = ", ".join(f"plan.{ending}" for ending in ("csv", "json", "parquet"))
    kept = (
        f"{folder}/: {names}" if folder else f"--out DIR keeps all {len(answers)} rows, with their commands"
    )
    lines += [f"Files: {kept}"]
    out.print(Text("\n".join(line.rstrip() for line in lines)), soft_wrap=True)


def slo_words(slo: Slo) -> str:
    """Return an objective in words: "TTFT 500 ms and TPOT 50 ms for 99.0% of requests"."""
    return f"{listed(_limits(slo), 'and')} for {percent(slo.attainment)} of requests"


def _limits(slo: Slo) -> list[str]:
    return [f"{LATENCIES[name]} {number(limit, 1e3)} ms" for name, limit in _given(slo).items()]


def _given(slo: Slo) -> dict[str, float]:
    return {name: limit for name, limit in slo.limits.items() if limit is not None}


def _asked(scenario: Scenario, question: Question, answers: Sequence[Answer]) -> Iterator[str]:
    """Yield the question, and how an answer is found."""
    trial, runs = question.trial, sum(answer.runs for answer in answers)
    model = f"{scenario.model.name} ({formats(scenario.as_dict())})"
    yield f"Plan: {model} for {_traffic(scenario)}; {slo_words(scenario.slo)}"
    seeds = "the seed" if len(trial.seeds) == 1 else f"{len(trial.seeds)} seeds together"
    yield (
        f"SLO met: by {percent(scenario.slo.attainment)} of the requests of {seeds} "
        f"({trial.requests:,} each, warm-up left out), none saturated"
    )
    yield f"Looked at: {counted(len(answers), 'configuration')}, {counted(runs, 'run')} simulated"


def _traffic(scenario: Scenario) -> str:
    workload = scenario.workload
    if isinstance(workload, Trace):
        if workload.rate_rps is not None:
            return (
                f"{workload.path} at {number(workload.rate_rps * workload.rate_scale)} requests/s (poisson)"
            )
        times = "" if workload.rate_scale == 1 else f"{workload.rate_scale:g} times "
        return f"{workload.path} at {times}its recorded rate"
    if isinstance(workload, Replay):
        return f"{workload.source} at its recorded rate"
    inputs, outputs = workload.lengths.mean
    kind = type(workload.arrivals).__name__.lower()
    rate = getattr(workload.arrivals, "rate_rps", None)
    return (
        f"{number(rate)} requests/s ({kind}), {number(inputs)} tokens in and {number(outputs)} out on average"
    )


def _ranking(best: Sequence[Answer], width: int) -> Iterator[str]:
    """Yield the table of the best."""
    rows = [[str(rank), *_figures(answer)] for rank, answer in enumerate(best, start=1)]
    yield from table_lines([*map(list, zip(*_HEADINGS, strict=True)), *rows], _WORDS, width)
    yield ""
    yield "replicas: P prefill, D decode; headroom: the highest rate that meets the SLO / the rate asked for;"
    yield "limited by: the latency that gives way beyond it (queue: none, but requests pile up) and what it"
    yield "is spent on; $/h with spare: with one replica more (one more of each where pools are two)"


def _figures(answer: Answer) -> list[str]:
    candidate, verdict = answer.candidate, answer.verdict
    return [
        candidate.gpu,
        str(candidate.tensor_parallel_size),
        candidate.scheduler,
        _replicas(answer),
        f"{answer.gpus:,}",
        money(answer.usd_per_hour),
        money(answer.usd_per_million_output_tokens),
        percent(verdict.attainment if verdict else None),
        number(verdict.ttft_p99_s if verdict else None, 1e3),
        number(verdict.tpot_p99_s if verdict else None, 1e3),
        _times(answer.headroom),
        _limit(answer),
        money(answer.usd_per_hour_with_spare),
    ]


def _times(factor: float | None) -> str:
    if factor is None:
        return "-"
    return f"{factor:.2f}x" if factor < 100 else f"{number(factor)}x"


def _replicas(answer: Answer) -> str:
    if not answer.candidate.split:
        return f"{answer.shape[0]:,}"
    prefill, decode = answer.shape
    return f"{prefill}P+{decode}D"


def _limit(answer: Answer) -> str:
    if answer.limit is None:
        return "-"
    symptom = answer.limit.symptom
    return f"{symptom if symptom == 'queue' else symptom.upper()} {answer.limit.cause}"


def _nearest(scenario: Scenario, answer: Answer, question: Question) -> Iterator[str]:
    """Yield that nothing meets the objective, and what comes nearest."""
    yield "No configuration meets the SLO."
    candidate, verdict = answer.candidate, answer.verdict
    what = f"Nearest: {_replicas(answer)} replicas of {candidate.tensor_parallel_size} x {candidate.gpu}"
    what = f"{what}, {candidate.scheduler}"
    if verdict is not None:
        state = (
            ", saturated" if verdict.saturated else "" if verdict.clean else ", requests dropped or left over"
        )
        yield (
            f"{what} (${money(answer.usd_per_hour)} per hour): met by {percent(verdict.attainment)}{state}; "
            f"p99 TTFT {number(verdict.ttft_p99_s, 1e3)} ms, TPOT {number(verdict.tpot_p99_s, 1e3)} ms; "
            f"limited by {_limit(answer)}"
        )
    elif answer.fate == "needs_too_many":
        yield f"{what} are needed at the least: {answer.gpus:,} GPUs, ${money(answer.usd_per_hour)} per hour"
    else:
        yield f"Nearest: {candidate.label}: {answer.outlook.detail}"


def _others(
    scenario: Scenario, answers: Sequence[Answer], best: Sequence[Answer], question: Question
) -> Iterator[str]:
    """Yield how many others there are of each fate."""
    shown = {answer.candidate.label for answer in best}
    others = [answer for answer in answers if answer.candidate.label not in shown]
    if not others:
        return
    best_words = "the first" if len(best) == 1 else f"the first {len(best)}"
    allowed = f"{question.max_gpus:,} GPUs or {question.max_replicas:,} replicas"
    limits = dict(zip(_given(scenario.slo), _limits(scenario.slo), strict=True))
    sentences: Counter[str] = Counter()
    for fate, sentence in FATES.items():
        for answer in others:
            if answer.fate == fate:
                limit = limits.get(answer.outlook.limit or "", "")
                sentences[sentence.format(best=best_words, allowed=allowed, limit=limit)] += 1
    yield f"The other {len(others)}:" if best else f"All {len(others)}:"
    yield from (f"{count:>4} {sentence}" for sentence, count in sentences.items())
