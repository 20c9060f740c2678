"""How to divide replicas between prefill and decode: by the balance of work, not by a grid."""

from __future__ import annotations

from collections.abc import Sequence

from servesim.frontier.candidate import Shape

#: Splits that are looked at for one number of replicas: the balanced one, and two to each side of it.
MOST = 5


def splits(replicas: int, least: Shape, busy_s: Sequence[float]) -> list[Shape]:
    """Return ways to divide ``replicas`` between two pools, the most balanced first.

    Balanced is a split that keeps both pools equally busy: in the ratio of the replica-seconds ``busy_s``
    that the traffic takes in each. No pool gets fewer than ``least``.
    """
    fewest, most = least[0], replicas - least[1]
    balanced = replicas * busy_s[0] / sum(busy_s)
    nearest_first = sorted(range(fewest, most + 1), key=lambda prefill: (abs(prefill - balanced), prefill))
    return [(prefill, replicas - prefill) for prefill in nearest_first[:MOST]]


def hopeless(shape: Shape, failed: Sequence[Shape]) -> bool:
    """Say whether a shape that has failed has at least as many replicas in each pool."""
    return any(all(own <= other for own, other in zip(shape, tried, strict=True)) for tried in failed)
