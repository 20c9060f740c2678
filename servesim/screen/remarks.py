"""What there is to say below a table of runs: each thing once, and of which runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from servesim.screen.notes import FREE_TIERS, caveats
from servesim.words import listed

#: Parts of a summary that tell whether two runs went the same way.
_COURSE = ("accounting", "latency", "throughput", "prefill", "goodput", "cost")
#: Characters of a reason.
_SHORT = 240

#: The name of each run, and its summary, or why it has none.
Results = Mapping[str, Mapping[str, Any] | str]


def remarks(results: Results) -> Iterator[str]:
    """Yield why runs failed, which went exactly the same way, and how far their figures can be trusted."""
    there = {name: found for name, found in results.items() if not isinstance(found, str)}
    yield from _failures(results)
    yield from _alike(there)
    if any(summary["offload"] for summary in there.values()):
        yield FREE_TIERS
    told: dict[str, dict[str, str]] = {}
    for name, summary in there.items():
        for caveat in caveats(summary):
            told.setdefault(caveat.what, {})[name] = caveat.remedy
    for what, remedies in told.items():
        yield f"{_runs([*remedies], len(there))}: {what}: {_furthest([*remedies.values()])}"


def _failures(results: Results) -> Iterator[str]:
    """Yield each reason, shortened to what a line or two can hold."""
    failed: dict[str, list[str]] = {}
    for name, reason in results.items():
        if isinstance(reason, str):
            failed.setdefault(reason, []).append(name)
    for reason, names in failed.items():
        told = " ".join(reason.split())
        yield f"{_runs(names, 0)} failed: {told if len(told) <= _SHORT else f'{told[: _SHORT - 1]}…'}"


def _alike(there: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield which runs have the same figures to the last digit."""
    groups: list[tuple[list[Any], list[str]]] = []
    for name, summary in there.items():
        course = [summary.get(part) for part in _COURSE]
        names = next((names for other, names in groups if other == course), None)
        if names is None:
            groups.append((course, [name]))
        else:
            names.append(name)
    for _, names in groups:
        if len(names) > 1:
            yield f"{_runs(names, 0)} went exactly the same way: what sets them apart has no effect there"


def _runs(names: Sequence[str], of: int) -> str:
    """Return runs by their numbers; ``of``: how many there are, if all may be said."""
    if len(names) == of:
        return "all runs" if of > 1 else f"run {names[0]}"
    return f"run{'s' if len(names) > 1 else ''} {listed(names, 'and')}"


def _furthest(remedies: Sequence[str]) -> str:
    """Return the remedy with the largest numbers, which serves the others, too."""
    return max(remedies, key=lambda remedy: [float(each) for each in re.findall(r"\d+", remedy)])
