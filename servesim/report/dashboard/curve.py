"""What the configurations would do at other rates: a few quick points around the present one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pandas as pd

from servesim.report.dashboard.state import RATE, State, command
from servesim.report.dashboard.whatif import Answer, WhatIfs
from servesim.sweeps.flat import flatten

#: The rates of a curve, in units of the present one.
FACTORS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)


def rate_curve(whatifs: WhatIfs, state: State, wanted: Callable[[], bool]) -> pd.DataFrame | None:
    """Return a table as that of a sweep, with a variant for each configuration and a row for each rate.

    None where the present state has no answer, or once nobody waits for it: ``wanted`` is asked before
    each run.
    """
    rate = state.demand.rate
    if rate is None or any(
        whatifs.ask(state.overrides(setup)).summary is None for setup in state.setups.values()
    ):
        return None
    rows: list[dict[str, object]] = []
    for letter, setup in state.setups.items():
        for each in rates(float(rate)):
            if not wanted():
                return None
            demand = replace(state.demand, rate=each)
            answer = whatifs.ask(replace(state, demand=demand).overrides(setup))
            rows.append({"point": len(rows), "variant": letter, RATE: each, **dict(_row(answer, state))})
    return pd.DataFrame(rows)


def rates(rate_rps: float) -> list[float]:
    """Return the rates of the curve around a rate: three digits each, and the rate itself as it is."""
    return [rate_rps if factor == 1.0 else float(f"{factor * rate_rps:.3g}") for factor in FACTORS]


def _row(answer: Answer, state: State) -> Iterator[tuple[str, object]]:
    """Yield the columns of a run."""
    yield "seed", state.demand.seed
    failed = answer.summary is None
    clean = not failed and answer.summary["accounting"]["clean"]  # type: ignore[index]
    yield "status", "failed" if failed else "clean" if clean else "not_clean"
    yield "error", "\n".join(map(str, answer.problems)) or None
    yield "command", command(answer.overrides)
    yield "hash", ""
    yield from flatten(answer.summary or {}).items()
