"""What the result files of benchmarking tools say of the load and of the deployment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

#: Processes that send everything they may at once, or as soon as an answer has come.
_UNPACED = ("closed_loop", "burst")
#: Shapes of the gaps between arrivals, as ``--burstiness`` has them.
_BURSTINESS = {"poisson": 1.0, "constant": inf}


@dataclass(frozen=True)
class About:
    """What was asked of which deployment.

    Attributes:
        model: the name of the model.
        version: of servesim.
        request_rate: requests per second that were offered; infinite where none waited for its time.
        burstiness: the shape of gamma-distributed gaps (1: Poisson, infinite: constant).
        max_concurrency: requests that the client has under way at most; None: no limit.
        ramp: the keys of a ramp of the rate, where there is one.
        gpus: GPUs paid for, by the role of their pool.
        tensor_parallel_size: GPUs of a replica; None where two pools may differ.
        replicas: replicas of the only pool; None where there are two.
    """

    model: str
    version: str
    request_rate: float
    burstiness: float
    max_concurrency: int | None
    ramp: Mapping[str, Any]
    gpus: Mapping[str, int]
    tensor_parallel_size: int | None
    replicas: int | None

    @classmethod
    def of(cls, summary: Mapping[str, Any]) -> About:
        """Return what a summary says of it."""
        scenario = summary["scenario"]
        workload, client, cluster = (scenario.get(key) or {} for key in ("workload", "client", "cluster"))
        arrivals = workload.get("arrivals") or {}
        ramp = {key: value for key, value in arrivals.items() if key.startswith("ramp_up_") and value}
        pools = cluster if "prefill" in cluster else {"serve": cluster}
        roles = [role for role in ("serve", "prefill", "decode") if role in pools]
        single = pools.get("serve", {})
        return cls(
            model=scenario["model"]["name"],
            version=scenario["version"],
            request_rate=_rate(workload, arrivals, summary["traffic"]["offered_per_s"]),
            burstiness=arrivals.get("burstiness", _BURSTINESS.get(str(arrivals.get("kind")), 1.0)),
            max_concurrency=client.get("max_concurrency") or arrivals.get("concurrency"),
            ramp=ramp if "ramp_up_strategy" in ramp else {},
            gpus={role: pools[role]["replicas"] * pools[role]["tensor_parallel_size"] for role in roles},
            tensor_parallel_size=single.get("tensor_parallel_size"),
            replicas=single.get("replicas"),
        )

    @property
    def num_gpus(self) -> int:
        """All GPUs paid for."""
        return sum(self.gpus.values())


def _rate(workload: Mapping[str, Any], arrivals: Mapping[str, Any], offered_per_s: float | None) -> float:
    """Return the rate that was asked for; of recorded times and of a schedule, the one that came out."""
    if arrivals.get("kind") in _UNPACED or workload.get("at_once"):
        return inf
    asked = arrivals.get("rate_rps", offered_per_s)
    return inf if asked is None else float(asked)
