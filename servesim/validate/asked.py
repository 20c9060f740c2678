"""What a command line of ``servesim validate`` asks for, checked."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import NamedTuple

from servesim.check import ConfigError, Problem
from servesim.validate.closed_loop import REQUESTS_PER_USER, STARTS
from servesim.validate.compare import FIGURES
from servesim.validate.measured import Figure, Measured
from servesim.validate.options import option_of, seconds_of, whole
from servesim.validate.points import Points, points_of
from servesim.validate.readers import runs_of
from servesim.validate.readers.content import Content, read_content
from servesim.validate.readers.selection import conditions
from servesim.validate.tolerance import Tolerance, parsed
from servesim.validate.users import departs
from servesim.words import listed

#: Options that are whole numbers, and their bounds.
_MOST = {
    "isl": 10**7,
    "osl": 10**7,
    "requests_per_user": 10_000,
    "max_concurrency": 1_000_000,
    "jobs": 1024,
}


class Fitting(NamedTuple):
    """What is to be fitted: on which figures, judged by which runs, and the name of the result."""

    figures: list[Figure]
    held_out: dict[str, str]
    name: str

    @property
    def split(self) -> str:
        """Tell which runs are held out."""
        words = " ".join(f"{name}={value}" for name, value in self.held_out.items())
        return f"{words} held out, the others fitted" if words else "all fitted, none held out"


class Asked(NamedTuple):
    """What a command line asks for, checked."""

    contents: list[Content]
    overrides: list[str]
    where: dict[str, str]
    by: list[str]
    ttft_limit_s: float | None
    numbers: dict[str, int | None]
    tolerance: str | None
    out: Path
    config_dir: Path | None
    start: str
    fit: Fitting | None
    replaces: bool = False

    @property
    def per_user(self) -> int:
        """Return how many requests each user of a closed-loop point sends."""
        return self.numbers["requests_per_user"] or REQUESTS_PER_USER

    @property
    def jobs(self) -> int:
        """Return the number of processes; -1 for one per core."""
        return self.numbers["jobs"] or -1

    def files(self, *names: str) -> str:
        """Tell where files go, and where they take the place of earlier ones."""
        return f"{self.out}/: {', '.join(names)}{' (earlier ones replaced)' if self.replaces else ''}"

    def measured(self) -> list[Measured]:
        """Return the runs of all files, with the client's limit where the command line says it.

        Raises:
            ConfigError: listing what is wrong with any of the files.
        """
        self.refuse(("isl", "osl", "requests_per_user"), "goes with a table of closed-loop points")
        runs: list[Measured] = []
        found: list[Problem] = []
        for content in self.contents:
            try:
                runs += runs_of(content, self.where, self.by)
            except ConfigError as error:
                found += error.problems
        users = self.numbers["max_concurrency"]
        found += [
            Problem("--max-concurrency", users, f"{run.source} says {run.max_concurrency:,}")
            for run in runs
            if users is not None and run.max_concurrency not in (None, users)
        ]
        if found:
            raise ConfigError(found)
        if users is None:
            return runs
        told = any(text.startswith("workload.arrivals.") for text in self.overrides)
        return [_by_users(run, users, told) for run in runs]

    def points(self, content: Content) -> Points:
        """Return the points of a table of them.

        Raises:
            ConfigError: listing what is wrong with it, or options that do not go with it.
        """
        self.refuse(("max_concurrency",), "does not go with a table of closed-loop points, which has its own")
        if self.by or self.ttft_limit_s is not None:
            option = "--by" if self.by else "--ttft-limit"
            raise ConfigError([Problem(option, None, "does not go with a table of closed-loop points")])
        return points_of(content, self.where, self.numbers["isl"], self.numbers["osl"])

    def tolerances(self, names: Sequence[str]) -> list[Tolerance]:
        """Return the tolerances, of the names that there are.

        Raises:
            ConfigError: listing what is wrong with them.
        """
        return [] if self.tolerance is None else parsed(self.tolerance, names)

    def refuse(self, names: Sequence[str], message: str) -> None:
        """Raise where options were given that do not go with the files.

        Raises:
            ConfigError: listing them.
        """
        given = {name: self.numbers[name] for name in names if self.numbers[name] is not None}
        if given:
            raise ConfigError(Problem(option_of(name), value, message) for name, value in given.items())


def _by_users(run: Measured, users: int, told: bool) -> Measured:
    """Return a run as one of so many users, as the command line says it.

    Unless it has ``told`` how these begin and think, a note says where the times differ.
    """
    if run.max_concurrency is not None:  # the file says it too, and what its times say has been judged
        return replace(run, request_rate=inf)
    run = replace(run, max_concurrency=users, request_rate=inf)
    why = departs(run)
    note = f"{why}: workload.arrivals.ramp_up_s and .think_time_s let users send so"
    return replace(run, notes=(*run.notes, note)) if why and not told else run


def asked(options: argparse.Namespace) -> Asked:
    """Return what is asked for.

    Raises:
        ConfigError: listing what is wrong with the command line and with what the files hold.
    """
    files = [Path(text) for text in options.rest if "=" not in text]
    found = [] if files else [Problem("RUN", None, "is missing: a file that a benchmark has left")]
    numbers = {name: whole(name, getattr(options, name), most, found) for name, most in _MOST.items()}
    where = _conditions("--where", options.where, found)
    contents = _contents(files, found)
    limit_s = seconds_of(options.ttft_limit, found)
    fit = _fitting(options, found)
    if options.start not in STARTS:
        found.append(Problem("--start", options.start, f"must be {listed(STARTS, 'or')}"))
    if found:
        raise ConfigError(found)
    out = _claimed(options.out or _folder(files[0]))
    return Asked(
        contents,
        overrides=[text for text in options.rest if "=" in text],
        where=where,
        by=[name for name in (options.by or "").split(",") if name],
        ttft_limit_s=limit_s,
        numbers=numbers,
        tolerance=options.tolerance,
        out=out,
        config_dir=options.config_dir,
        start=options.start,
        fit=fit,
        replaces=any(out.iterdir()),
    )


def _contents(files: Sequence[Path], found: list[Problem]) -> list[Content]:
    names = [path.name for path in files]
    contents = []
    for path in files:
        try:
            content = read_content(path)
        except ConfigError as error:
            found += error.problems
            continue
        alike = names.count(path.name) > 1 and bool(path.parent.name)
        contents.append(content._replace(name=f"{path.parent.name}/{path.name}") if alike else content)
    return contents


def _folder(run: Path) -> Path:
    """Return where the files go unless that is given: a run's name, below the name of its folder."""
    return Path("validation") / run.parent.name / run.stem


def _conditions(option: str, text: str | None, found: list[Problem]) -> dict[str, str]:
    try:
        return conditions(text or "")
    except ConfigError as error:
        found += [replace(each, path=option) for each in error.problems]
    return {}


def _fitting(options: argparse.Namespace, found: list[Problem]) -> Fitting | None:
    """Return what is to be fitted; None where nothing is."""
    given = {"--fit-on": options.fit_on, "--held-out": options.held_out, "--name": options.name}
    if not options.fit:
        found += [Problem(name, value, "goes with --fit") for name, value in given.items() if value]
        return None
    known = {f"{metric}.{statistic}": (metric, statistic) for metric, statistic in FIGURES}
    names = (options.fit_on or "tpot.mean").split()
    if odd := [name for name in names if name not in known]:
        message = f"must be some of {listed(known, 'and')}"
        found += [Problem("--fit-on", name, message) for name in odd]
    if options.tolerance is not None:
        found.append(Problem("--tolerance", options.tolerance, "does not go with --fit"))
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name := options.name or "fitted"):
        found.append(Problem("--name", name, "must be letters, digits, dots and dashes"))
    figures = [known[each] for each in names if each in known]
    return Fitting(figures, _conditions("--held-out", options.held_out, found), name)


def _claimed(folder: Path) -> Path:
    """Return the folder of the files, made before anything is simulated for them.

    Raises:
        ConfigError: nothing can be written there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError([Problem("--out", str(folder), f"cannot be made ({error.strerror})")]) from error
    return folder
