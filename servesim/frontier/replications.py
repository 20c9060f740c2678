"""Tables over seeds: what the rows of one configuration and load say together."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from servesim.frontier.intervals import Interval, paired_difference, replicate_interval
from servesim.frontier.objective import Bracket, bracket, judged

Key = tuple[Hashable, ...]

#: Figures that say whether a load meets the SLO.
_JUDGED = (
    *(f"goodput.{name}" for name in ("attainment", "judged", "cut", "target")),
    *("saturated", "settled"),
)


def settings(table: pd.DataFrame) -> list[str]:
    """Return the columns that tell configurations and loads apart: ``variant`` and the axes."""
    names = list(table.columns)
    return names[names.index("variant") : names.index("seed")]


def over_seeds(table: pd.DataFrame, metrics: Sequence[str], confidence: float = 0.95) -> pd.DataFrame:
    """Return one row per configuration and load of a sweep, in grid order.

    Each has the settings, ``seeds`` (how many were run), ``failed`` (how many of them have no figures),
    ``saturated`` (the share of the others that is), ``settled`` (whether more than half of them have a steady
    part), ``pooled`` (the share of the requests of all seeds together that met the SLO), ``meets`` (whether
    it is enough, as :func:`~servesim.frontier.objective.judged` says) and ``untold`` (whether nobody can
    tell), ``command`` and ``point`` of its first seed, and of each metric M its mean ``M`` and the ends
    ``M.low`` and ``M.high`` of its t-interval, NaN with one seed.

    Args:
        table: a table as :func:`servesim.sweep` returns it.
        metrics: names of its columns; one that it lacks has no values.
        confidence: of the intervals.

    """
    keys = settings(table)
    rows = []
    for key, seeds in _groups(table, keys):
        ran = seeds[seeds["status"] != "failed"]
        row: dict[str, Any] = dict(zip(keys, key, strict=True))
        row |= {"seeds": len(seeds), "failed": len(seeds) - len(ran)}
        row["saturated"] = replicate_interval(_numbers(ran, "saturated")).mean
        row |= _verdict(seeds, ran)
        row |= {"point": seeds["point"].iloc[0], "command": seeds["command"].iloc[0]}
        for metric in metrics:
            interval = replicate_interval(_numbers(ran, metric), confidence)
            row |= {metric: interval.mean, f"{metric}.low": interval.low, f"{metric}.high": interval.high}
        rows.append(row)
    return pd.DataFrame(rows)


def _verdict(seeds: pd.DataFrame, ran: pd.DataFrame) -> dict[str, Any]:
    """Return what the seeds of a load say together of the SLO."""
    known = ran[[name for name in _JUDGED if name in ran]].astype(object)
    rows = known.where(known.notna(), None).to_dict("records")
    verdict = judged(rows, len(ran) == len(seeds))
    pooled = np.nan if verdict.attainment is None else verdict.attainment
    told = {"settled": verdict.settled, "pooled": pooled}
    return told | {"meets": verdict.meets is True, "untold": verdict.meets is None}


def bracket_of(points: pd.DataFrame, load: str) -> Bracket:
    """Return up to which load one configuration meets the SLO, by those of its points that have figures."""
    known = points[points["failed"] < points["seeds"]]
    verdicts = zip(known["meets"], known["untold"], strict=True)
    return bracket(
        list(map(float, known[load])), [None if untold else bool(meets) for meets, untold in verdicts]
    )


def brackets(points: pd.DataFrame, keys: Sequence[str], load: str) -> dict[Key, Bracket]:
    """Return up to which load each configuration meets the SLO, by the values of ``keys``.

    Args:
        points: as :func:`over_seeds` returns them.
        keys: the columns that tell configurations apart.
        load: the column of the load.

    """
    known = points[points["failed"] < points["seeds"]]
    return {key: bracket_of(rows, load) for key, rows in _groups(known, keys)}


def compared(table: pd.DataFrame, metric: str, baseline: str, confidence: float = 0.95) -> pd.DataFrame:
    """Return how each variant differs from the ``baseline`` in one metric, at equal axes and load.

    One row per configuration and load that both have: its settings, ``difference`` (the variant's less the
    baseline's, paired by seed), ``low`` and ``high`` of its t-interval, and ``n``, the pairs.
    """
    axes = settings(table)[1:]
    base = dict(_groups(table[table["variant"] == baseline], axes))
    rows = []
    for (variant, *key), seeds in _groups(table[table["variant"] != baseline], ["variant", *axes]):
        if tuple(key) in base:
            interval = _paired(seeds, base[tuple(key)], metric, confidence)
            row: dict[str, Any] = {"variant": variant, **dict(zip(axes, key, strict=True))}
            rows.append(row | {"difference": interval.mean, **interval._asdict()})
    return pd.DataFrame(rows, columns=["variant", *axes, "difference", "low", "high", "n"])


def _paired(first: pd.DataFrame, second: pd.DataFrame, metric: str, confidence: float) -> Interval:
    """Return the difference over the seeds that both have."""
    _, ours, theirs = np.intersect1d(first["seed"], second["seed"], return_indices=True)
    return paired_difference(_numbers(first, metric)[ours], _numbers(second, metric)[theirs], confidence)


def _groups(table: pd.DataFrame, keys: Sequence[str]) -> Iterator[tuple[Key, pd.DataFrame]]:
    """Yield the rows of each combination of values, in the order of first appearance."""
    if not keys:
        yield (), table
        return
    for key, rows in table.groupby(list(keys), sort=False, dropna=False):
        yield key if isinstance(key, tuple) else (key,), rows


def _numbers(rows: pd.DataFrame, name: str) -> np.ndarray:
    """Return a column as numbers, NaN where there is none."""
    if name not in rows:
        return np.full(len(rows), np.nan)
    return pd.to_numeric(rows[name], errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
