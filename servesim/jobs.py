"""The jobs of one command line: Hydra composes each of them, and servesim runs it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain, count
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from servesim.check import ConfigError, Problem
from servesim.config.compose import HYDRA_ERRORS, VERSION_BASE, as_completed, said
from servesim.config.groups import Groups, conf_dir
from servesim.config.loading import from_completed, from_overrides
from servesim.config.overrides import Overrides, quoted
from servesim.config.search_path import own_folder_first
from servesim.engine.clock import StalledError
from servesim.scenario import Scenario
from servesim.screen.comparison import print_comparison
from servesim.screen.console import console
from servesim.screen.progress import progress_bar
from servesim.screen.summary import print_summary
from servesim.simulation import run
from servesim.workload.sessions import Sessions
from servesim.workload.synthetic import DEFAULT_REQUESTS

CLEAN, WRONG_INPUT, NOT_CLEAN = 0, 1, 3
_FROM_BEST_TO_WORST = (CLEAN, NOT_CLEAN, WRONG_INPUT)


@dataclass(frozen=True)
class Job:
    """One job that is over: the overrides that made it, and its summary, or why it has none."""

    overrides: tuple[str, ...]
    folder: Path
    summary: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def status(self) -> int:
        """The exit status of the job."""
        if self.summary is None:
            return WRONG_INPUT
        return CLEAN if self.summary["accounting"]["clean"] else NOT_CLEAN


def run_jobs(options: argparse.Namespace) -> int:
    """Run what the options and overrides of a command line ask for, and return the worst exit status.

    Raises:
        ConfigError: the command line as a whole is wrong. What is wrong with one job of several is
            printed, and the others run.

    """
    if options.shell_completion:
        return _answer(options, options.overrides)
    groups = Groups.of(options.config_dir, options.config_name)
    overrides = Overrides(options.overrides, groups, options.multirun)
    if overrides.problems:
        from_overrides(overrides, options.config_dir)
    try:
        if options.cfg or options.info or options.hydra_help:
            return _answer(options, overrides.ready)
        return _simulate(options, overrides.ready)
    except HYDRA_ERRORS as error:
        from_overrides(overrides, options.config_dir)
        raise ConfigError([said(error)]) from error
    except ConfigError:
        if not options.multirun:  # the job's own says nothing of what Hydra could not compose
            from_overrides(overrides, options.config_dir)
        raise


def _answer(options: argparse.Namespace, overrides: list[str]) -> int:
    """Let Hydra answer a question about the configuration; nothing runs."""
    _hydra(lambda config: None, options, overrides)
    return CLEAN


def _simulate(options: argparse.Namespace, overrides: list[str]) -> int:
    """Run the job, or each of several, in a folder of its own."""
    jobs: list[Job] = []
    place = "hydra.sweep.dir=" if options.multirun else "hydra.run.dir="
    chosen = any(text.startswith(place) for text in overrides)
    if chosen and options.out:
        raise ConfigError([Problem("--out", str(options.out), f"says again what {place[:-1]} says")])
    claimed = None if chosen or options.out else _claim_folder(Path("runs"))
    try:
        target = options.out or claimed
        folder = [f"{place}{quoted(str(target))}"] if target else []
        _hydra(lambda config: jobs.append(_run(config)), options, [*overrides, *folder])
    finally:
        if claimed:
            _remove_empty(claimed, claimed.parent)
    if not jobs:
        raise ConfigError([Problem("", None, "there is nothing to run: a list of values is empty")])
    failed = [job for job in jobs if job.problems]
    if failed and len(failed) == len(jobs):
        raise ConfigError(problem for job in failed for problem in job.problems)
    if options.multirun or len(jobs) != 1:
        _compare(jobs)
    else:
        _show(jobs[0])
    return max((job.status for job in jobs), key=_FROM_BEST_TO_WORST.index, default=CLEAN)


def _run(config: DictConfig) -> Job:
    """Run one job that Hydra has composed."""
    setting = HydraConfig.get()
    folder = Path(os.path.relpath(setting.runtime.output_dir))
    # As typed: what is wrong with a ${key} in it is told below.
    task: Any = OmegaConf.to_container(setting.overrides.task, resolve=False)
    job = Job(tuple(str(text).lstrip("+") for text in task), folder)
    try:
        try:
            scenario = from_completed(as_completed(config, setting))
        except HYDRA_ERRORS as error:
            raise ConfigError([said(error)]) from error
        with progress_bar(_most_requests(scenario), console(stderr=True)) as tell:
            result = run(scenario, folder, tell)
    except ConfigError as error:
        _remove_empty(folder)
        return replace(job, problems=error.problems)
    except StalledError as error:
        return replace(job, problems=(Problem("", None, str(error)),))
    result.save(folder)
    notes = scenario.workload.notes
    return replace(job, summary=result.summary, notes=tuple(notes.lines()) if notes else ())


def _show(job: Job) -> None:
    """Print the screen of the only job."""
    if job.summary is not None:
        print_summary(job.summary, console(), job.notes, job.folder)


def _compare(jobs: list[Job]) -> None:
    """Print what was wrong with some jobs, and the figures of the others side by side.

    A job is called by its number, which is the name of its folder, and by the overrides that not all have.
    """
    shared = set.intersection(*(set(job.overrides) for job in jobs)) if len(jobs) > 1 else set()
    rows, errors = [], {}
    for job in jobs:
        own = [_as_typed(text) for text in job.overrides if text not in shared]
        rows.append((job.folder.name, own, job.summary))
        if job.problems:
            errors[job.folder.name] = "; ".join(map(str, job.problems))
            print(f"{' '.join(own)}: {ConfigError(job.problems)}", file=sys.stderr)
    places = sorted({f"{job.folder.parent}/<run>/" for job in jobs})
    print_comparison(rows, console(), ", ".join(places), errors)


def _as_typed(override: str) -> str:
    """Return an override with its truth value as it is typed, which Hydra writes as Python does."""
    key, equals, value = override.partition("=")
    return f"{key}{equals}{value.lower() if value in ('True', 'False') else value}"


def _most_requests(scenario: Scenario) -> int | None:
    """Return how many requests will be sent, for the bar; None where the clock decides."""
    workload = scenario.workload
    if workload.notes is not None:
        return workload.notes.requests
    if isinstance(workload, Sessions):
        return workload.most_requests
    return None if workload.duration_s is not None else workload.requests or DEFAULT_REQUESTS


def _hydra(task: Callable[[DictConfig], Any], options: argparse.Namespace, overrides: list[str]) -> None:
    """Run ``task`` under Hydra's own command line."""
    os.environ["HYDRA_FULL_ERROR"] = "1"  # so that errors come here instead of being printed
    flags = {
        "--multirun": options.multirun,
        "--config-name": options.config_name,
        "--cfg": options.cfg,
        "--package": options.package,
        "--resolve": options.resolve,
        "--info": options.info,
        "--hydra-help": options.hydra_help,
        "--shell-completion": options.shell_completion,
    }
    words = [[flag] if value is True else [flag, str(value)] for flag, value in flags.items() if value]
    before = sys.argv
    sys.argv = ["servesim", *chain.from_iterable(words), *overrides]
    try:
        with own_folder_first(options.config_dir):
            hydra.main(config_path=str(conf_dir()), config_name="config", version_base=VERSION_BASE)(task)()
    finally:
        sys.argv = before


def _claim_folder(parent: Path) -> Path:
    """Make a folder named after the date and time, which no other run can have."""
    now = datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    for number in count(1):
        folder = parent / (now if number == 1 else f"{now}_{number}")
        with suppress(FileExistsError):
            folder.mkdir(parents=True)
            return folder
    raise AssertionError("there is always a further number")


def _remove_empty(*folders: Path) -> None:
    """Remove the folders that nothing was written to."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()
