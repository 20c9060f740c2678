"""All-reduce and all-to-all: a process per GPU, which times the same cases as the others at the same time."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from queue import Empty
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from calibration.measure.bench import Bench, Prepared
from calibration.measure.case import Case, UnsupportedError
from calibration.measure.protocol import COLLECTIVE_REPLAYS
from calibration.measure.timer import Timer, Timing

#: Without a word from any process for so long, they are taken to hang and are ended.
HANGS_AFTER_S = 120.0
LOOKS_EVERY_S = 0.5


#: What a process says of a case: its kernel and timing, or an error.
Word = tuple[str, Timing] | Exception


class Outcome(NamedTuple):
    """What came of a case: its kernel and timing, or an error."""

    case: Case
    kernel: str = ""
    timing: Timing | None = None
    error: Exception | None = None


def measured(cases: Sequence[Case], device: str, gpus: int) -> Iterator[Outcome]:
    """Yield the outcome of every case, all of them of ``gpus`` GPUs.

    Processes that fail are started again behind the case they failed at, unless it was their first: then none
    would do better.
    """
    left = list(cases)
    if device != "cpu" and (there := torch.cuda.device_count()) < gpus:
        reason = UnsupportedError(f"collectives among {gpus} GPUs: there are {there}")
        yield from (Outcome(case, error=reason) for case in left)
        return
    while left:
        first = left[0]
        for outcome in _group(tuple(left), device, gpus):
            left.remove(outcome.case)
            yield outcome
        if outcome.error is not None and outcome.case == first:
            yield from (Outcome(case, error=outcome.error) for case in left)
            return


def _group(cases: Sequence[Case], device: str, gpus: int) -> Iterator[Outcome]:
    """Yield outcomes up to the first failure, of processes that live as long as this is iterated."""
    context = mp.get_context("spawn")
    words = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        meeting = (Path(folder) / "meeting").as_uri()
        group = [
            context.Process(target=_work, args=(rank, gpus, device, meeting, cases, words), daemon=True)
            for rank in range(gpus)
        ]
        try:
            for process in group:
                process.start()
            early: dict[int, Word] = {}
            for at, case in enumerate(cases):
                said = _next_word(at, early, words, group)
                if isinstance(said, Exception):
                    yield Outcome(case, error=said)
                    return
                yield Outcome(case, *said)
        finally:
            for process in group:
                process.join(LOOKS_EVERY_S)
                process.kill()
                process.join()


def _next_word(at: int, early: dict[int, Word], words: Any, group: Sequence[Any]) -> Word:
    """Return the processes' word on case ``at``, or why there is none; one may be ahead with an error."""
    waited = 0.0
    while waited < HANGS_AFTER_S:
        if at in early:
            return early[at]
        try:
            on, word = words.get(timeout=LOOKS_EVERY_S)
            early[on] = word
            continue
        except Empty:
            waited += LOOKS_EVERY_S
        if ended := [process.exitcode for process in group if process.exitcode]:
            return RuntimeError(f"a process of the group ended with status {ended[0]}")
    return RuntimeError(f"no answer in {HANGS_AFTER_S:.0f} s")


def _work(rank: int, gpus: int, device: str, meeting: str, cases: Sequence[Case], words: Any) -> None:
    """Time cases as one of a group of processes; the first of them says the slowest one's times."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the starting process ends this one
    at = 0
    try:
        place = device if device == "cpu" else f"{device}:{rank}"
        if device != "cpu":
            torch.cuda.set_device(place)
        dist.init_process_group(
            "gloo" if device == "cpu" else "nccl",
            init_method=meeting,
            rank=rank,
            world_size=gpus,
            timeout=timedelta(seconds=HANGS_AFTER_S),
        )
        bench = Bench(place)
        timer = Timer(bench)
        for at, case in enumerate(cases):
            prepared = prepare(case, bench)
            dist.barrier()
            timing = timer.timed(prepared, COLLECTIVE_REPLAYS)
            slowest = _slowest(timing, bench)
            if rank == 0:
                words.put((at, (prepared.kernel, slowest)))
    except UnsupportedError as problem:
        words.put((at, problem))
    except Exception as problem:  # of any library; the starting process needs no more of it than its words
        words.put((at, RuntimeError(f"{type(problem).__name__}: {problem}")))
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


def prepare(case: Case, bench: Bench) -> Prepared:
    """Return a collective over BF16 numbers, to be called by every process of the group."""
    numbers = bench.random(case["bytes"] // 2)
    backend = dist.get_backend()
    graph = case["mode"] == "graph"
    if graph:
        bench.need_gpu("a CUDA graph")
    if case.operation == "all_to_all":
        call = partial(dist.all_to_all_single, torch.empty_like(numbers), numbers)
        return Prepared(bench.same(call), f"{backend}_all_to_all", capture=graph)
    sums = numbers.clone()
    calls = bench.same(partial(dist.all_reduce, sums))
    # Sums grow with every call: from fresh numbers, those of a round stay within BF16.
    return Prepared(calls, f"{backend}_all_reduce", capture=graph, reset=partial(sums.copy_, numbers))


def _slowest(timing: Timing, bench: Bench) -> Timing:
    """Return the largest of each time among the processes."""
    times = torch.tensor(
        [timing.seconds, timing.fastest, timing.slowest], dtype=torch.float64, device=bench.device
    )
    dist.all_reduce(times, dist.ReduceOp.MAX)
    seconds, fastest, slowest = times.tolist()
    return Timing(seconds, fastest, slowest, timing.rounds, timing.how)
