"""What the configurations would do under other loads: a few quick points around the present one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pandas as pd

from servesim.report.dashboard.demand import Demand
from servesim.report.dashboard.state import State, command
from servesim.report.dashboard.whatif import Answer, WhatIfs
from servesim.sweeps.flat import flatten

#: The loads of a curve, in units of the present one.
FACTORS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)


@dataclass(frozen=True)
class Curve:
    """Runs under several loads: a table as that of a sweep, the key of the load, and the present one."""

    table: pd.DataFrame
    key: str
    load: float


def load_curve(whatifs: WhatIfs, state: State, wanted: Callable[[], bool]) -> Curve | None:
    """Return the curve of the present state, with a variant for each configuration and a row for each load.

    None where it has no answer or its traffic no load, or once nobody waits for it: ``wanted`` is asked
    before each run.
    """
    name = state.demand.load
    if name is None:
        return None
    load, key = vars(state.demand)[name], state.demand.keys(name)[0]
    load = state.demand.own(name) if load is None else load
    if load is None or any(
        whatifs.ask(state.overrides(setup)).summary is None for setup in state.setups.values()
    ):
        return None
    rows: list[dict[str, object]] = []
    for letter, setup in state.setups.items():
        for each in loads(load):
            if not wanted():
                return None
            here = state.demand if each == load else Demand.of({**vars(state.demand), name: each})
            answer = whatifs.ask(replace(state, demand=here).overrides(setup))
            rows.append({"point": len(rows), "variant": letter, key: each, **dict(_row(answer, state))})
    return Curve(pd.DataFrame(rows), key, float(load))


def loads(load: float) -> list[float]:
    """Return the loads of the curve around one: three digits each, whole where it is, and itself as it is."""
    kind = type(load)
    others = (kind(float(f"{factor * load:.3g}")) for factor in FACTORS)
    near = [load if factor == 1.0 else each for factor, each in zip(FACTORS, others, strict=True)]
    return list(dict.fromkeys(each for each in near if each > 0))


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
