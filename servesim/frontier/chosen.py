"""The loads at which configurations are shown and compared."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

_GOOD, _DONE = "goodput.requests_per_s", "throughput.requests_per_s"
_COST = "cost.usd_per_million_output_tokens"
#: The figures by which a load is chosen.
DECIDING = (_GOOD, _DONE, _COST)

#: Share of seeds from which on a load counts as saturated.
_MOST = 0.5


def best_loads(means: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Return one load of each configuration: the cheapest that meets the SLO.

    Where none does, it is the settled one with the most goodput; without an SLO, with the most done.

    Args:
        means: as :func:`~servesim.frontier.replications.over_seeds` returns them, with ``DECIDING``.
        keys: the columns that tell configurations apart.

    """
    chosen = []
    for _, rows in means.groupby(list(keys), sort=False, dropna=False):
        meeting = rows[rows["meets"] & rows[_COST].notna()]
        settled = rows[rows["settled"].astype(bool)]
        known = settled if len(settled) else rows
        score = known[_GOOD].fillna(known[_DONE]).fillna(-1.0)
        chosen.append(meeting[_COST].idxmin() if len(meeting) else score.idxmax())
    return means.loc[chosen].reset_index(drop=True)


def common_loads(means: pd.DataFrame, keys: Sequence[str], baseline: str) -> pd.DataFrame:
    """Return the load, of those that both have, at which each variant is compared with the baseline.

    It is the highest at which neither is saturated and one of them meets the SLO, where there is an SLO; else
    the lowest.

    Args:
        means: as :func:`~servesim.frontier.replications.over_seeds` returns them.
        keys: the columns of the axes, the load last.
        baseline: the variant that the others are compared with.

    """
    said = ["saturated", "meets", "pooled"]
    ours, theirs = (means.loc[means["failed"] < means["seeds"], ["variant", *keys, *said]] for _ in range(2))
    theirs = theirs[theirs["variant"] == baseline].drop(columns="variant")
    both = ours[ours["variant"] != baseline].merge(theirs, on=list(keys), suffixes=("", ".base"))
    calm = both[["saturated", "saturated.base"]].fillna(0).max(axis=1) < _MOST
    asked = both[["pooled", "pooled.base"]].notna().any(axis=1)
    fit = calm & (both["meets"] | both["meets.base"] | ~asked)
    chosen = [
        (rows[fit[rows.index]][keys[-1]].idxmax() if fit[rows.index].any() else rows[keys[-1]].idxmin())
        for _, rows in both.groupby(["variant", *keys[:-1]], sort=False, dropna=False)
    ]
    return both.loc[chosen, ["variant", *keys]]
