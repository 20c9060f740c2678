"""A run: cases one after the other until the plan or the time is over, and what is missing then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from calibration.measure.bench import Bench
from calibration.measure.case import Case, UnsupportedError
from calibration.measure.collectives import Outcome, measured
from calibration.measure.families import PREPARE
from calibration.measure.machine import Clocks, Machine
from calibration.measure.plan import blocks, case_seconds, gpus_of, limit_seconds, plan
from calibration.measure.store import Store
from calibration.measure.timer import Timer
from calibration.sources.tidy import SourceError

#: Rows are written at least so often.
SAVE_EVERY_S = 5.0

#: Exit statuses: all that this machine can run was timed; something failed or was not reached; interrupted.
DONE, MISSING, INTERRUPTED = 0, 3, 130
INTERRUPTION = "Interrupted: the same command goes on from here."


class BrokenDeviceError(RuntimeError):
    """The GPU does not answer any more: only a new process can use it."""


def measure(folder: Path, device: str, budget: float, console: Console) -> int:
    """Time the plan of a budget into a folder, which may hold a part of it; return the exit status.

    Raises:
        SourceError: where there is no such device, or the folder holds files that are no measurements.
    """
    if device != "cpu" and not torch.cuda.is_available():
        raise SourceError("torch finds no GPU: --device cpu tries the runner with tiny shapes")
    bench = Bench(device)
    store = Store(folder, Machine.of(bench))
    cases = plan(device, budget)
    console.print(str(store.machine), highlight=False, markup=False)
    for name, why in bench.unusable.items():
        console.print(f"{name} is not used: {why}", highlight=False, markup=False)
    if store.set_aside:
        console.print(f"Timings of another machine or other versions were moved to {store.set_aside}.")
    run = Run(bench, store, Clocks(bench), monotonic() + limit_seconds(budget))
    ended = run.through([case for case in cases if not store.has(case)], console)
    for line in (*filter(None, [ended]), *missing(cases, store), f"{_timed(cases, store)} in {folder}"):
        console.print(line, highlight=False, markup=False)
    if ended == INTERRUPTION:
        return INTERRUPTED
    return DONE if all(_is_settled(case, store) for case in cases) else MISSING


def missing(cases: Sequence[Case], store: Store) -> Iterator[str]:
    """Yield what has no row in the store: how many cases of which operation, and why."""
    reasons = Counter(
        (case.operation, store.failures[case]["error"] if case in store.failures else "not reached")
        for case in cases
        if not store.has(case)
    )
    for (operation, reason), number in sorted(reasons.items()):
        of = sum(case.operation == operation for case in cases)
        yield f"{operation}: {number} of {of} missing: {reason.strip().partition(chr(10))[0]}"


def _timed(cases: Sequence[Case], store: Store) -> str:
    return f"{sum(map(store.has, cases)):,} of {len(cases):,} shapes of the plan"


def _is_settled(case: Case, store: Store) -> bool:
    """Return whether a case has its row, or cannot have one on this machine."""
    return store.has(case) or (case in store.failures and store.failures[case]["unsupported"])


@dataclass(frozen=True)
class Run:
    """A run on a bench into a store, until ``deadline`` on the monotonic clock."""

    bench: Bench
    store: Store
    clocks: Clocks
    deadline: float

    def through(self, cases: Sequence[Case], console: Console) -> str:
        """Time cases, with a bar; return why that ended before the last, or nothing.

        Rows are safe whatever ends it: they are written every few seconds, and at the end.
        """
        columns = (
            TextColumn("{task.fields[operation]:<18}"),
            BarColumn(),
            TextColumn("{task.fields[done]:,} of {task.fields[cases]:,}"),
            TimeRemainingColumn(),
        )
        saved = monotonic()
        try:
            with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
                lasting = sum(map(case_seconds, cases))
                task = bar.add_task("", total=lasting, operation="", done=0, cases=len(cases))
                for done, outcome in enumerate(self.outcomes(cases), 1):
                    self._keep(outcome)
                    advance = case_seconds(outcome.case)
                    bar.update(task, advance=advance, operation=outcome.case.operation, done=done)
                    if monotonic() - saved > SAVE_EVERY_S:
                        self.store.save()
                        saved = monotonic()
        except KeyboardInterrupt:
            return INTERRUPTION
        except (TimeoutError, BrokenDeviceError) as why:
            return str(why)
        finally:
            self.store.save()
        return ""

    def outcomes(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        """Yield what comes of the cases in order.

        Raises:
            TimeoutError: when the time is over.
            BrokenDeviceError: when the GPU answers no more.
        """
        timer = Timer(self.bench)
        for block in blocks(cases):
            with closing(self._block(block, timer)) as coming:
                for _ in block:
                    if monotonic() > self.deadline:
                        raise TimeoutError("The time is over: the same command goes on from here.")
                    yield next(coming)

    def _block(self, cases: Sequence[Case], timer: Timer) -> Generator[Outcome, None, None]:
        """Yield what comes of cases of one number of GPUs."""
        gpus = gpus_of(cases[0])
        if gpus > 1:
            yield from measured(cases, self.bench.device.type, gpus)
            return
        for case in cases:
            yield self._single(case, timer)

    def _single(self, case: Case, timer: Timer) -> Outcome:
        try:
            prepared = PREPARE[case.operation](case, self.bench)
            return Outcome(case, prepared.kernel, timer.timed(prepared))
        except Exception as problem:  # whatever a kernel library raises concerns this case only
            problem.__traceback__ = None  # it holds the case's tensors
            return Outcome(case, error=problem)

    def _keep(self, outcome: Outcome) -> None:
        if outcome.timing is not None:
            self.store.add(outcome.case, outcome.kernel, outcome.timing, self.clocks.now())
            return
        unsupported = isinstance(outcome.error, UnsupportedError)
        said = str(outcome.error) if unsupported else f"{type(outcome.error).__name__}: {outcome.error}"
        self.store.fail(outcome.case, said, unsupported=unsupported)
        if not unsupported and self.bench.is_broken():
            raise BrokenDeviceError(
                f"The GPU answers no more after {outcome.case.operation} {outcome.case}: start again."
            )
