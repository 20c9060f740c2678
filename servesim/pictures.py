"""The verbs ``servesim page`` and ``servesim trace``: pictures of a run from the folder that it left."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from math import isnan
from pathlib import Path

from servesim.arguments import Arguments
from servesim.check import ConfigError, Problem
from servesim.screen.figures import counted
from servesim.sweeps.study import Study
from servesim.sweeps.sweep import STUDY
from servesim.sweeps.table import NAME as TABLE
from servesim.sweeps.table import read_table

_PAGE_HELP = """\
servesim page RUN_FOLDER [options]: the charts of a run as one HTML page, which needs no network.

  servesim page runs/2026-01-31_12-00-00      writes page.html into the folder
  servesim page sweeps/batching_frontier      writes index.html into the folder of a study, again

  --out FILE          write the page there instead
  --config-dir DIR    where profiles of your own lie, if the run had one
"""
_TRACE_HELP = """\
servesim trace RUN_FOLDER [options]: the timeline of a run, for https://ui.perfetto.dev or chrome://tracing.

  servesim trace runs/2026-01-31_12-00-00                        writes timeline.json into the folder
  servesim trace runs/2026-01-31_12-00-00 --start 60 --end 90    the half minute from second 60 on

  --start S           from this simulated second on (the first request)
  --end S             up to this simulated second (the end of the run)
  --out FILE          write the timeline there instead
"""


def page(arguments: Sequence[str]) -> int:
    """Write the page that ``arguments`` (those after the verb) ask for; return the exit status.

    Raises:
        ConfigError: listing what is wrong with the input.

    """
    parser = _parser("page")
    parser.add_argument("-cd", "--config-dir", type=Path)
    options = parser.parse_args(arguments)
    if options.help:
        print(_PAGE_HELP)
        return 0
    folder = _folder(options)
    if options.config_dir is not None and not options.config_dir.is_dir():
        raise ConfigError([Problem("--config-dir", str(options.config_dir), "there is no such folder")])
    if (folder / TABLE).is_file():
        from servesim.report.frontier.page import write_page as write_sweep

        print(write_sweep(folder, Study.read(folder / STUDY), read_table(folder), options.out))
        return 0
    from servesim.report.run.page import write_page

    path = options.out or folder / "page.html"
    write_page(folder, path, options.config_dir)
    print(path)
    return 0


def trace(arguments: Sequence[str]) -> int:
    """Write the timeline that ``arguments`` (those after the verb) ask for; return the exit status.

    Raises:
        ConfigError: listing what is wrong with the input.

    """
    parser = _parser("trace")
    parser.add_argument("--start", type=float)
    parser.add_argument("--end", type=float)
    options = parser.parse_args(arguments)
    if options.help:
        print(_TRACE_HELP)
        return 0
    from servesim.report.run.saved import Run
    from servesim.report.run.timeline import write_timeline

    run = Run.read(_folder(options))
    start_s, end_s = (
        given if given is not None else end
        for given, end in zip((options.start, options.end), run.span, strict=True)
    )
    given = {"--start": options.start, "--end": options.end}
    if odd := [
        Problem(name, value, "must be a number")
        for name, value in given.items()
        if value is not None and isnan(value)
    ]:
        raise ConfigError(odd)
    if not start_s < end_s:
        message = (
            f"must be after --start {start_s:g}; the run lasts from {run.span[0]:g} to {run.span[1]:g} s"
        )
        raise ConfigError([Problem("--end", end_s, message)])
    path = options.out or options.folder / "timeline.json"
    window = write_timeline(run, path, start_s, end_s)
    drawn = f"{counted(window.requests, 'request')} and {counted(window.leaps, 'run')} of equal steps"
    print(f"{path}: {drawn} from {window.start_s:g} to {window.end_s:g} s")
    if window.left_out:
        print(f"{window.left_out:,} later ones are left out; choose a stretch with --start and --end")
    return 0


def _folder(options: argparse.Namespace) -> Path:
    if options.folder is None:
        raise ConfigError([Problem("RUN_FOLDER", None, "is missing: the folder that a run has left")])
    folder: Path = options.folder
    return folder


def _parser(verb: str) -> argparse.ArgumentParser:
    parser = Arguments(f"servesim {verb}")
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--out", type=Path)
    parser.add_argument("-h", "--help", action="store_true")
    return parser
