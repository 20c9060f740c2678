"""Which candidates can be told from closed forms alone, without a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal

import numpy as np

from servesim.check import Problem, problems
from servesim.cluster.deployment import Deployment
from servesim.frontier.bounds import Alone, alone, attainable
from servesim.frontier.candidate import Candidate, Shape
from servesim.frontier.capacity import busy_s, least_replicas
from servesim.frontier.traffic import Trial, drawn
from servesim.results.slo import Slo
from servesim.scenario import Scenario
from servesim.workload.batch import Batch

#: Why a candidate needs no run: the model cannot be split so; weights leave no room for KV; the KV cache is
#: shorter than the longest request; the configuration is refused for another reason; a limit is missed even
#: by requests that have the cluster to themselves.
Obstacle = Literal["indivisible", "does_not_fit", "kv_too_small", "refused", "unreachable"]

#: What each latency is called.
LATENCIES = {"ttft_s": "TTFT", "tpot_s": "TPOT", "e2e_s": "E2E"}


@dataclass(frozen=True)
class Outlook:
    """What the closed forms say of a candidate.

    Attributes:
        obstacle: why it can never do; None where it may.
        detail: the figure behind the obstacle, in words.
        limit: the limit that is out of reach, such as ``tpot_s``.
        attainable: the largest attainment that they allow.
        busy_s: replica-seconds that the traffic takes in each pool, at the least.
        span_s: how long the traffic is sent for; both are of all seeds together.
        least: replicas of each pool below which requests pile up.
    """

    obstacle: Obstacle | None = None
    detail: str = ""
    limit: str | None = None
    attainable: float = 0.0
    busy_s: tuple[float, ...] = ()
    span_s: float = 0.0
    least: Shape = ()

    def rate_factor(self, shape: Shape) -> float:
        """Return how much denser traffic may be at the most before it exceeds what so many replicas do."""
        busiest = max(seconds / replicas for seconds, replicas in zip(self.busy_s, shape, strict=True))
        return self.span_s / busiest if busiest else inf


def outlook(candidate: Candidate, trial: Trial) -> Outlook:
    """Return what can be told of a candidate under the traffic of a trial without simulating it."""
    scenario = candidate.tried(candidate.smallest, trial, trial.seeds[0])
    found = next(problems(scenario), None)
    if found is not None:
        return Outlook(_obstacle(found), found.message.partition(";")[0])
    pools = scenario.deployments()
    traffic = [drawn(scenario.workload, seed) for seed in trial.seeds]
    longest = max(_longest(scenario, sent) for sent in traffic)
    held = min(pool.max_model_len for pool in pools)
    if longest > held:
        return Outlook("kv_too_small", f"the KV cache holds {held:,} tokens, a request has {longest:,}")
    return _under_load(scenario, pools, traffic)


def _obstacle(problem: Problem) -> Obstacle:
    if problem.path.endswith("tensor_parallel_size"):
        return "indivisible"
    if problem.path == "scheduler.max_model_len":
        return "kv_too_small"
    return "does_not_fit" if problem.path.startswith("cluster") else "refused"


def _longest(scenario: Scenario, sent: Batch) -> int:
    """Return the tokens of the longest request, cut at the length that the model or the user allows."""
    given, most = scenario.scheduler.max_model_len, scenario.model.max_position_embeddings
    allowed = most if given == "auto" else given
    return min(int((sent.input_tokens + sent.output_tokens).max()), allowed)


def _under_load(scenario: Scenario, pools: Sequence[Deployment], traffic: Sequence[Batch]) -> Outlook:
    """Return the bounds on latencies and on capacity, of all seeds together."""
    latencies = [alone(scenario, pools, sent) for sent in traffic]
    shares = [attainable(scenario.slo, each) for each in latencies]
    best = {name: max(share[name] for share in shares) for name in shares[0]}
    busy = np.sum([busy_s(scenario, pools, sent) for sent in traffic], axis=0).tolist()
    span_s = sum(float(sent.sent_s[-1]) for sent in traffic)
    missed = None
    if best["slo"] < scenario.slo.attainment:
        missed = min(LATENCIES.keys() & best.keys(), key=lambda name: (best[name], name))
    return Outlook(
        obstacle="unreachable" if missed else None,
        detail=_at_best(scenario.slo, missed, latencies) if missed else "",
        limit=missed,
        attainable=best["slo"],
        busy_s=tuple(busy),
        span_s=span_s,
        least=least_replicas(busy, span_s),
    )


def _at_best(slo: Slo, limit: str, latencies: Sequence[Alone]) -> str:
    """Return the lowest value of a limit that enough requests could meet, in words."""
    heap = np.concatenate([getattr(each, limit) for each in latencies])
    least_s = float(np.quantile(heap, slo.attainment, method="inverted_cdf"))
    return f"{LATENCIES[limit]} is {1e3 * least_s:,.0f} ms at best for {100 * slo.attainment:g}% of requests"
