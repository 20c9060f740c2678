"""What a command line of ``servesim validate`` asks for, read and checked."""

from __future__ import annotations

import argparse
import re
from math import isfinite
from pathlib import Path
from typing import NamedTuple

from servesim.arguments import Arguments
from servesim.check import ConfigError, Problem, listed
from servesim.validate.closed_loop import STARTS
from servesim.validate.compare import FIGURES
from servesim.validate.measured import Figure
from servesim.validate.readers.content import Content, read_content
from servesim.validate.readers.selection import conditions

_MOST_TOKENS, _MOST_USERS, _MOST_PER_USER, _MOST_JOBS = 10**7, 1_000_000, 10_000, 1024


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

    @property
    def jobs(self) -> int:
        """Return the number of processes; -1 for one per core."""
        return self.numbers["jobs"] or -1


def asked_of(options: argparse.Namespace) -> Asked:
    """Return what is asked for.

    Raises:
        ConfigError: listing what is wrong with the command line and with what the files hold.
    """
    files = [Path(text) for text in options.rest if "=" not in text]
    found = [] if files else [Problem("RUN", None, "is missing: a file that a benchmark has left")]
    contents: list[Content] = []
    numbers = {
        "isl": _whole("--isl", options.isl, _MOST_TOKENS, found),
        "osl": _whole("--osl", options.osl, _MOST_TOKENS, found),
        "requests_per_user": _whole("--requests-per-user", options.requests_per_user, _MOST_PER_USER, found),
        "max_concurrency": _whole("--max-concurrency", options.max_concurrency, _MOST_USERS, found),
        "jobs": _whole("--jobs", options.jobs, _MOST_JOBS, found),
    }
    where: dict[str, str] = {}
    try:
        where = conditions(options.where or "")
    except ConfigError as error:
        found += error.problems
    for path in files:
        try:
            contents.append(read_content(path))
        except ConfigError as error:
            found += error.problems
    limit_s = _seconds(options.ttft_limit, found)
    fitting = _fitting(options, found)
    if options.start not in STARTS:
        found.append(Problem("--start", options.start, f"must be {listed(STARTS, 'or')}"))
    if found:
        raise ConfigError(found)
    return Asked(
        contents,
        [text for text in options.rest if "=" in text],
        where,
        [name for name in (options.by or "").split(",") if name],
        limit_s,
        numbers,
        options.tolerance,
        _claimed(options.out or Path("validation") / files[0].stem),
        options.config_dir,
        options.start,
        fitting,
    )


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
    held_out: dict[str, str] = {}
    try:
        held_out = conditions(options.held_out or "")
    except ConfigError as error:
        found += [Problem("--held-out", each.value, each.message) for each in error.problems]
    return Fitting([known[each] for each in names if each in known], held_out, name)


def _whole(option: str, text: str | None, most: int, found: list[Problem]) -> int | None:
    if text is None:
        return None
    if text.isdecimal() and text.isascii() and len(text) <= len(str(most)) and 1 <= int(text) <= most:
        return int(text)
    found.append(Problem(option, text, f"must be a whole number, at least 1 and at most {most:,}"))
    return None


def _seconds(text: str | None, found: list[Problem]) -> float | None:
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if isfinite(seconds) and seconds > 0:
        return seconds
    found.append(Problem("--ttft-limit", text, "must be a number of seconds above 0"))
    return None


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


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    options = Arguments("servesim validate")
    options.add_argument("rest", nargs="*")
    options.add_argument("-h", "--help", action="store_true")
    options.add_argument("--where")
    options.add_argument("--by")
    options.add_argument("--max-concurrency")
    options.add_argument("--ttft-limit")
    options.add_argument("--isl")
    options.add_argument("--osl")
    options.add_argument("--requests-per-user")
    options.add_argument("--tolerance")
    options.add_argument("--start", default="steady")
    options.add_argument("--fit", action="store_true")
    options.add_argument("--fit-on")
    options.add_argument("--held-out")
    options.add_argument("--name")
    options.add_argument("--jobs")
    options.add_argument("--out", type=Path)
    options.add_argument("-cd", "--config-dir", type=Path)
    return options
