"""What the screen of a validation and its page both say in words: what was measured, simulated and noted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from servesim.screen.errors import signed_percent
from servesim.screen.figures import counted, number
from servesim.screen.hardware import cluster, gpus, pools
from servesim.screen.notes import replay_notes
from servesim.validate.compare import Comparison
from servesim.validate.measured import Measured
from servesim.validate.series import Knee, shortly
from servesim.validate.server import ASSUMED
from servesim.words import listed

#: Lines that are told of a kind of note whose figures differ from run to run.
_MOST_ALIKE = 2
#: Runs that a note names; of more it tells how many they are.
_MOST_NAMED = 4


def what(scenario: Mapping[str, Any]) -> str:
    """Tell what was simulated: model, hardware, scheduler."""
    hardware = listed((f"{count} x {gpu}" for gpu, count in gpus(scenario).items()), "and")
    kind = scenario["scheduler"]["kind"]
    return f"{scenario['model']['name']} on {hardware}: {cluster(scenario, None)}; scheduler {kind}"


def assumed(scenario: Mapping[str, Any]) -> str:
    """Tell what nobody has said of the server; empty where all has been."""
    return next((note for note in scenario.get("notes", ()) if note.startswith(ASSUMED)), "")


def capital(text: str) -> str:
    """Return a sentence with a capital first letter, the others as they are."""
    return text[:1].upper() + text[1:]


def measured(comparisons: Sequence[Comparison]) -> str:
    """Tell what was measured: the one run, or what several of them have in common."""
    runs = [each.measured for each in comparisons]
    if len(runs) == 1:
        return how(runs[0], by_users(comparisons[0]))
    total = counted(sum(run.requests for run in runs), "request")
    formats = listed(dict.fromkeys(run.format for run in runs), "and")
    return f"{counted(len(runs), 'run')}, {total} ({formats})"


def by_users(comparison: Comparison) -> bool:
    """Tell whether a run was replayed by users, each of whom sends the next when the last has ended."""
    workload = comparison.summary["scenario"]["workload"] if comparison.summary else {}
    return comparison.measured.closed_loop or "arrivals" in workload


def how(run: Measured, users: bool) -> str:
    """Tell what was measured, and how its requests are replayed: by users, or at which times."""
    tokens = (number(float(each.mean())) for each in (run.input_tokens, run.output_tokens))
    means = "{} tokens in and {} out on average".format(*tokens)
    if users:
        sending = f"{counted(run.max_concurrency or 0, 'user')}, each the next when the last has ended"
    elif run.due_s is not None:
        sending = f"when they were due, at most {run.max_concurrency:,} under way"
    elif run.sent_s[-1] == run.sent_s[0]:
        sending = "all at once"
    else:
        times = "made-up" if run.drawn else "their recorded"
        sending = f"at {times} times" + (f", {number(run.offered_rps)}/s" if run.offered_rps else "")
    return f"{run.source} ({run.format}): {counted(run.requests, 'request')}, {sending}; {means}"


def load_of(comparison: Comparison) -> str:
    """Return how densely requests were sent: so many a second, or by so many users."""
    run = comparison.measured
    if by_users(comparison):
        return counted(run.max_concurrency or 0, "user")
    return "at once" if run.offered_rps is None else f"{number(run.offered_rps)}/s"


def short_names(comparisons: Sequence[Comparison]) -> list[str]:
    """Return what runs are called side by side: only what they differ in."""
    runs = [each.measured for each in comparisons]
    files = {run.source.partition(" ")[0] for run in runs}
    if len(runs) == 1 or not all(run.labels for run in runs) or len(files) > 1:
        return [run.source for run in runs]
    columns = [name for name in runs[0].labels if len({run.labels.get(name) for run in runs}) > 1]
    return [" ".join(shortly(name, run.labels[name]) for name in columns) for run in runs]


def knee_line(knee: Knee) -> str:
    """Tell where p99 TTFT passes the limit."""
    places = [
        f"{word} {_at(rate, knee.rates[0])}"
        for word, rate in (("measured", knee.measured_rps), ("simulated", knee.simulated_rps))
    ]
    error = "" if knee.error is None else f" ({signed_percent(knee.error)})"
    name = f"{knee.name}: " if knee.name else ""
    return f"{name}p99 TTFT passes {knee.limit_s:g} s: {', '.join(places)}{error}"


def _at(rate: float | None, lowest: float) -> str:
    if rate is None:
        return "at none of the rates"
    return f"at {number(rate)}/s{' or less, the lowest rate' if rate == lowest else ''}"


def notes(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Yield what to know when reading the figures; of several runs, whose it is unless it is of all.

    Of notes that differ in their figures alone, the first are told in full.
    """
    kinds: dict[str, dict[str, list[str]]] = {}
    for name, each in zip(short_names(comparisons), comparisons, strict=True):
        for note in _notes(each):
            kinds.setdefault(re.sub(r"\d[\d.,]*", "#", note), {}).setdefault(note, []).append(name)
    for alike in kinds.values():
        told = list(alike.items())[:_MOST_ALIKE]
        for note, names in told:
            yield note if len(names) == len(comparisons) else f"{_named(names)}: {note}"
        if rest := sum(map(len, alike.values())) - sum(len(names) for _, names in told):
            yield f"... and likewise in {counted(rest, 'further run')}, with other figures"


def _named(names: Sequence[str]) -> str:
    return listed(names, "and") if len(names) <= _MOST_NAMED else counted(len(names), "run")


def _notes(comparison: Comparison) -> Iterator[str]:
    run, lost = comparison.measured, comparison.simulated.failed
    yield from run.notes
    if run.own_times and not by_users(comparison):
        yield (
            f"{run.own_times}: replayed at its times; workload.arrivals.ramp_up_s and .think_time_s "
            "let users send it"
        )
    if run.ramp_up_s and by_users(comparison):
        begun_s = (
            comparison.summary["scenario"]["workload"]["arrivals"]["ramp_up_s"] if comparison.summary else 0
        )
        given = "" if begun_s == run.ramp_up_s else f"; replayed over {number(begun_s)} s, as given"
        yield f"its users began evenly over {number(run.ramp_up_s)} s{given}"
    if run.mean_lengths:
        yield "only means are compared: percentiles of requests that are all as long would mean little"
    if backwards := int(np.count_nonzero(run.e2e_s < run.ttft_s)):
        yield f"{counted(backwards, 'request')} measured with an E2E below its TTFT: no TPOT of it"
    if run.failed:
        yield (
            f"{counted(run.failed, 'request')} failed when measured: left out, and the load of what was done "
            "for them is not replayed"
        )
    if lost:
        yield f"{counted(lost, 'request')} did not complete when simulated: in none of its figures"
    if comparison.summary is not None:
        yield from _on_the_server(run, comparison.summary["scenario"])
        yield from (note for note in replay_notes(comparison.summary) if not note.startswith(ASSUMED))


def _on_the_server(run: Measured, scenario: Mapping[str, Any]) -> Iterator[str]:
    """Yield where the file says another server than the one that was simulated."""
    model, name = (
        re.sub(r"[^a-z0-9]", "", str(each).lower()) for each in (run.model, scenario["model"]["name"])
    )
    if run.model is not None and name not in model:
        yield f"the file says the model {run.model}; {scenario['model']['name']} was simulated"
    if run.num_gpus is not None and run.num_gpus != (total := sum(gpus(scenario).values())):
        yield f"the file says {counted(run.num_gpus, 'GPU')}; {total:,} {_was(total)} simulated"
    sizes = {pool["tensor_parallel_size"] for pool in pools(scenario).values()}
    if run.tensor_parallel_size is not None and run.tensor_parallel_size not in sizes:
        simulated = listed((str(size) for size in sorted(sizes)), "and")
        yield f"the file says tensor parallelism {run.tensor_parallel_size}; {simulated} was simulated"


def _was(count: int) -> str:
    return "was" if count == 1 else "were"
