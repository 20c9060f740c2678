"""One run from beginning to end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from math import inf
from pathlib import Path

from servesim.check import check
from servesim.cluster.client import ClosedLoop, OpenLoop, Semaphore
from servesim.cluster.cluster import Cluster
from servesim.cluster.conversations import Conversations
from servesim.cluster.deployment import Deployment
from servesim.cluster.disaggregated import Disaggregated
from servesim.cluster.disaggregated_cluster import DisaggregatedCluster
from servesim.cluster.patience import Patience
from servesim.cluster.pooled_cluster import PooledCluster
from servesim.cluster.pools import PrefillDecode
from servesim.cluster.transfer import Links
from servesim.cluster.warmup import warm_up
from servesim.engine.clock import Clock, StalledError
from servesim.engine.static import Static
from servesim.results.accounting import Facts
from servesim.results.records import Records
from servesim.results.result import SUMMARY, Result
from servesim.results.summary import summarise
from servesim.scenario import Scenario
from servesim.streams import Streams
from servesim.workload.batch import Batch

Client = OpenLoop | Semaphore | ClosedLoop | Conversations

#: Told how many requests have been sent so far.
Progress = Callable[[int], None]


def run(scenario: Scenario, folder: str | Path | None = None, progress: Progress | None = None) -> Result:
    """Simulate a scenario.

    Args:
        scenario: what to simulate.
        folder: an existing folder that the tables are written into as they grow; in memory without it. The
            summary of an earlier run there is removed.
        progress: called every thousand requests or so.

    Raises:
        ConfigError: the scenario has problems; it lists them all.
        StalledError: the simulated cluster cannot make progress.
        TypeError: what was given is no scenario.

    """
    started_s = time.process_time()
    if not isinstance(scenario, Scenario):
        raise TypeError(f"a Scenario is needed, such as servesim.load() returns, not {scenario!r}")
    check(scenario)
    deployments = scenario.deployments()
    if folder is not None:
        (Path(folder) / SUMMARY).unlink(missing_ok=True)
    records = Records(deployments, None if folder is None else Path(folder))
    streams, clock = Streams(scenario.seed), Clock()
    cluster = _cluster(scenario, deployments, clock, streams, records)

    def pause(sent: int) -> None:
        records.flush()
        if progress is not None:
            progress(sent)

    batches, warmups = scenario.workload.batches(streams), 0
    if scenario.client.num_warmups:
        limit = scenario.client.max_concurrency or scenario.workload.concurrency
        batches, warmups = warm_up(clock, cluster, batches, scenario.client.num_warmups, limit)
    if scenario.admission is not None:
        cluster.admit_by(scenario.admission, scenario.slo.ttft_s)
    server = _server(scenario, clock, streams, cluster)
    client = _client(scenario, clock, streams, server, batches, pause)
    events = _simulate(clock, client, server, scenario.horizon_s)
    records.close()
    summary = summarise(
        records,
        deployments,
        _facts(scenario, cluster, server, client, warmups, events, started_s),
        slo=scenario.slo,
        pricing=scenario.pricing,
        weights_dtype=scenario.model.weights_dtype,
        board_power=scenario.board_power,
        calibration=scenario.calibration.name,
        scenario=scenario.as_dict(),
        transfer=scenario.transfer(),
        steady=scenario.steady,
        metrics=scenario.metrics,
    )
    return Result(summary, records)


def _cluster(
    scenario: Scenario, pools: Sequence[Deployment], clock: Clock, streams: Streams, records: Records
) -> Cluster:
    """Return the pools as a cluster in event time, behind the router."""
    scheduler, shape, router = scenario.scheduler, scenario.cluster, scenario.router
    shares = scenario.shares_prefixes
    if isinstance(scheduler, Disaggregated) and isinstance(shape, PrefillDecode):
        prefill, decode = pools
        links = Links.between(clock, prefill, decode, shape.transfer, shape.one_node(scenario.gpu))
        return DisaggregatedCluster(
            clock, prefill, decode, scheduler, router, links, streams, records, shares_prefixes=shares
        )
    (pool,) = pools
    return PooledCluster(clock, pool, scheduler, router, streams, records, shares_prefixes=shares)


def _server(scenario: Scenario, clock: Clock, streams: Streams, cluster: Cluster) -> Cluster | Patience:
    """Return what the client sends to: the cluster, behind the client's patience where that may end."""
    if not scenario.client.is_impatient:
        return cluster
    return Patience(clock, cluster, scenario.client, streams.stream("retries"))


def _client(
    scenario: Scenario,
    clock: Clock,
    streams: Streams,
    cluster: Cluster | Patience,
    batches: Iterator[Batch],
    pause: Callable[[int], None],
) -> Client:
    """Return who sends the requests."""
    limit, api_time_s = scenario.client.max_concurrency, scenario.client.api_time_s
    if (conversations := scenario.conversations) is not None:
        longest = cluster.max_model_len
        return Conversations(clock, conversations, streams, cluster, pause, longest, api_time_s)
    if users := scenario.workload.users:
        return ClosedLoop(
            clock,
            batches,
            cluster,
            pause,
            users,
            users.thoughts_s(streams.stream("think times")),
            scenario.workload.duration_s,
            api_time_s,
            scenario.workload.counted,
        )
    if limit is not None:
        return Semaphore(clock, batches, cluster, pause, limit, api_time_s)
    return OpenLoop(clock, batches, cluster, pause, api_time_s)


def _simulate(clock: Clock, client: Client, cluster: Cluster | Patience, horizon_s: float | None) -> int:
    """Let events happen until none is left, or up to the horizon; return how many they were."""
    events = clock.run_until(inf if horizon_s is None else horizon_s)
    if cluster.unfinished and horizon_s is None:
        raise StalledError(f"{cluster.unfinished} requests are in the system, and nothing is going to happen")
    end_s = clock.now if horizon_s is None else horizon_s
    client.halt(end_s)
    cluster.halt(end_s)
    return events


def _facts(
    scenario: Scenario,
    cluster: Cluster,
    server: Cluster | Patience,
    client: Client,
    warmups: int,
    events: int,
    started_s: float,
) -> Facts:
    """Return what a run that has ended knows beside its records."""
    notes = scenario.workload.notes
    swaps = getattr(scenario.scheduler, "preemption_mode", None) == "swap"
    return Facts(
        warmup=warmups,
        injected=cluster.injected,
        retries_pending=server.retries_pending if isinstance(server, Patience) else 0,
        held_due_s=client.held_due_s,
        not_sent=client.remaining(),
        length_capped=cluster.length_capped,
        zero_output_rows=notes.zero_outputs if notes else 0,
        open_loop=scenario.workload.open_loop,
        batched=isinstance(scenario.scheduler, Static),
        horizon_s=scenario.horizon_s,
        evicted_blocks=cluster.evicted_blocks,
        events=events,
        cpu_started_s=started_s,
        swaps=cluster.swaps if swaps else None,
        tiers=None if cluster.offloading is None else cluster.offloading.told(),
        sessions=client.ends if isinstance(client, Conversations) else None,
    )
