"""The timeline of a run in the Chrome trace format, which https://ui.perfetto.dev opens.

Format: "Trace Event Format", the Chromium project, 2016. Times are in microseconds. Each replica is a
process with its leaps as slices, its preemptions as instants, and counters of batch, queue and KV blocks;
the requests are a process whose tracks are requests, with the parts of their time inside.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from servesim.check import ConfigError, Problem
from servesim.files import in_one_go
from servesim.report.run.saved import Run

#: Leaps and requests of a file: each is some 4 to 10 events, and Perfetto still opens it at once.
MOST = 50_000

#: The process of the requests; replicas have their own numbers.
REQUESTS = 1_000_000

_MICRO = 1e6

Event = Mapping[str, Any]


class Window(NamedTuple):
    """The stretch of simulated time that is drawn, in seconds, and how much is in it.

    ``left_out`` leaps and requests of the stretch that was asked for begin at ``end_s`` or later.
    """

    start_s: float
    end_s: float
    leaps: int
    requests: int
    left_out: int


def write_timeline(
    run: Run, path: Path, start_s: float | None = None, end_s: float | None = None, most: int = MOST
) -> Window:
    """Write the timeline of a run, or of a stretch of it, and return what is in it.

    What overlaps the stretch is drawn whole. Where that is more than ``most`` leaps and requests, those that
    begin last are left out.

    Raises:
        ConfigError: nothing overlaps the stretch; no file is written.
    """
    asked = (run.span[0] if start_s is None else start_s, run.span[1] if end_s is None else end_s)
    leaps = run.steps[(run.steps.end_s >= asked[0]) & (run.steps.start_s <= asked[1])]
    requests = with_finish(run)
    requests = requests[(requests.finish_s >= asked[0]) & (requests.sent_s <= asked[1])]
    if leaps.empty and requests.empty:
        lasts = f"the run lasts from {run.span[0]:g} to {run.span[1]:g} s"
        message = f"nothing happens from {asked[0]:g} to {asked[1]:g} s; {lasts}"
        raise ConfigError([Problem("--start, --end", None, message)])
    begin_s = np.concatenate([leaps.start_s.to_numpy(), requests.sent_s.to_numpy()])
    order = np.argsort(begin_s, kind="stable")
    chosen = np.zeros(len(begin_s), dtype=bool)
    chosen[order[:most]] = True
    leaps, requests = leaps[chosen[: len(leaps)]], requests[chosen[len(leaps) :]]
    left_out = max(len(order) - most, 0)
    end = float(begin_s[order[most]]) if left_out else asked[1]
    window = Window(asked[0], end, len(leaps), len(requests), left_out)
    _write(path, window, chain(_names(run), _events(leaps, _leap), _events(requests, _request)))
    return window


def _events(rows: pd.DataFrame, made: Callable[[Mapping[Any, Any]], Iterator[Event]]) -> Iterator[Event]:
    """Yield the events that are made of each row."""
    for row in rows.to_dict("records"):
        yield from made(row)


def with_finish(run: Run) -> pd.DataFrame:
    """Return requests with ``finish_s``: when they ended, or else the run did."""
    return run.requests.assign(finish_s=run.requests.ended_s.fillna(run.span[1]))


def _write(path: Path, window: Window, events: Iterable[Event]) -> None:
    """Write one event a line, so that the file can also be searched."""
    head = json.dumps({"displayTimeUnit": "ms", "otherData": window._asdict()})
    with in_one_go(path) as beside, beside.open("w", encoding="utf-8", newline="\n") as file:
        file.write(head[:-1] + ', "traceEvents": [')
        for number, event in enumerate(events):
            file.write((",\n" if number else "\n") + json.dumps(event, separators=(",", ":")))
        file.write("\n]}\n")


def _names(run: Run) -> Iterator[Event]:
    """Yield what the processes are called."""
    for pool in run.pools:
        for replica in range(pool.first_replica, pool.first_replica + pool.replicas):
            role = "" if pool.role == "serve" else f" ({pool.role})"
            yield _meta(replica, f"replica {replica}{role}: {pool.tensor_parallel_size} x {pool.gpu.name}")
    yield _meta(REQUESTS, "requests")


def _meta(process: int, name: str) -> Event:
    return {"ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": {"name": name}}


def _leap(leap: Mapping[Any, Any]) -> Iterator[Event]:
    """Yield the slice of a leap, its counters, and an instant where it began with preemptions."""
    at = {"pid": int(leap["replica"]), "tid": 0, "ts": _us(leap["start_s"])}
    kind = "prompts" if leap["prefill_tokens"] else "decode"
    names = ("steps", "sequences", "decodes", "prefill_tokens", "context_tokens")
    yield {
        "ph": "X",
        "cat": "step",
        "name": f"{kind} x {leap['steps']}" if leap["steps"] > 1 else kind,
        **at,
        "dur": _us(leap["seconds"]),
        "args": {name: int(leap[name]) for name in names},
    }
    for name, column in (("batch", "sequences"), ("queue", "waiting"), ("KV blocks", "kv_blocks")):
        yield {"ph": "C", "name": name, **at, "args": {name: int(leap[column])}}
    if leap["preempted"]:
        count = int(leap["preempted"])
        yield {"ph": "i", "s": "p", "cat": "preemption", "name": f"preempted {count}", **at}


def _request(request: Mapping[Any, Any]) -> Iterator[Event]:
    """Yield the span of a request and those of its parts, as nested spans of one track.

    Queue, prefill and what the decode pool waits for follow each other. A run keeps no account of where the
    transfer lies within the last of them: it is drawn at its end, where it is when the pool is full. Nor of
    when a request was preempted: the replicas have that.
    """
    number, at_s, end_s = int(request["request_id"]), float(request["sent_s"]), float(request["finish_s"])
    sizes = ("input_tokens", "output_tokens", "generated_tokens", "preemptions")
    said = {name: int(request[name]) for name in sizes} | {"status": str(request["status"])}
    waited_s, moved_s = (_known(request[name]) for name in ("decode_queue_s", "transfer_s"))
    yield _end("b", number, f"request {number}", at_s, said)
    for name, seconds in (
        ("queue", _known(request["routing_s"]) + _known(request["queue_s"], end_s - at_s)),
        ("prefill", _known(request["prefill_s"])),
        ("to the decode pool", waited_s + moved_s),
    ):
        if seconds > 0:
            until_s = min(at_s + seconds, end_s)
            yield _end("b", number, name, at_s)
            if name == "to the decode pool" and moved_s > 0:
                yield _end("b", number, "transfer", max(at_s, until_s - moved_s))
                yield _end("e", number, "transfer", until_s)
            yield _end("e", number, name, until_s)
            at_s = until_s
    if end_s > at_s and _known(request["ttft_s"]) > 0:
        yield _end("b", number, "decode", at_s, {"preempted_s": _known(request["preempted_s"])})
        yield _end("e", number, "decode", end_s)
    yield _end("e", number, f"request {number}", end_s)


def _end(phase: str, number: int, name: str, at_s: float, said: Mapping[str, Any] | None = None) -> Event:
    """Return the begin (``b``) or the end (``e``) of a span of a request."""
    event = {"ph": phase, "cat": "request", "name": name, "id": number, "pid": REQUESTS, "tid": 0}
    return {**event, "ts": _us(at_s), **({"args": said} if said else {})}


def _known(seconds: float, otherwise: float = 0.0) -> float:
    """Return a time, or what stands for one that is missing."""
    return otherwise if pd.isna(seconds) else float(seconds)


def _us(seconds: float) -> float:
    """Return microseconds with three decimals, as the format wants them."""
    return round(float(seconds) * _MICRO, 3)
