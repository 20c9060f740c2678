"""Pictures of a run from the folder that it left: the verb ``servesim page``, and the timeline."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from servesim.arguments import Arguments
from servesim.check import ConfigError, Problem
from servesim.outputs import misnamed, overwritten
from servesim.screen.figures import counted
from servesim.sweeps.study import Study
from servesim.sweeps.sweep import STUDY
from servesim.sweeps.table import NAME as TABLE
from servesim.sweeps.table import read_table

#: How the names of a page and of a timeline end.
PAGE_ENDINGS, TIMELINE_ENDINGS = (".html", ".htm"), (".json",)

_PAGE_HELP = """\
servesim page RUN_FOLDER [options]: the charts of a run as one HTML page, which needs no network.

  servesim page runs/2026-01-31_12-00-00      writes page.html into the folder
  servesim page sweeps/batching_frontier      writes index.html into the folder of a study, again

  --out FILE          write the page there instead; it ends in .html
  --config-dir DIR    where profiles of your own lie, if the run had one
"""


def page(arguments: Sequence[str]) -> int:
    """Write the page that ``arguments`` (those after the verb) ask for; return the exit status.

    Raises:
        ConfigError: listing what is wrong with the input.

    """
    parser = Arguments("servesim page")
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--out", type=Path)
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("-cd", "--config-dir", type=Path)
    options = parser.parse_args(arguments)
    if options.help:
        print(_PAGE_HELP)
        return 0
    if found := list(_problems(options)):
        raise ConfigError(found)
    folder = Path(options.folder)
    if (folder / TABLE).is_file():
        from servesim.report.frontier.page import write_page as write_sweep

        print(write_sweep(folder, Study.read(folder / STUDY), read_table(folder), options.out))
        return 0
    from servesim.report.run.page import write_page

    path = options.out or folder / "page.html"
    write_page(folder, path, options.config_dir)
    print(path)
    return 0


def timeline(folder: Path, start: float | None, end: float | None, out: Path | None) -> int:
    """Write the timeline of a run, or of a stretch of it (simulated seconds); return the exit status.

    Raises:
        ConfigError: the folder is not one of a run, or the run is over before the stretch.

    """
    from servesim.report.run.saved import Run
    from servesim.report.run.timeline import write_timeline

    run = Run.read(folder)
    start_s, end_s = (
        given if given is not None else edge for given, edge in zip((start, end), run.span, strict=True)
    )
    if not start_s < end_s:
        message = (
            f"must be after --start {start_s:g}; the run lasts from {run.span[0]:g} to {run.span[1]:g} s"
        )
        raise ConfigError([Problem("--end", end_s, message)])
    path = out or folder / "timeline.json"
    window = write_timeline(run, path, start_s, end_s)
    drawn = f"{counted(window.requests, 'request')} and {counted(window.leaps, 'run')} of equal steps"
    print(f"{path}: {drawn} from {window.start_s:g} to {window.end_s:g} s")
    if window.left_out:
        print(f"{window.left_out:,} later ones are left out; choose a stretch with --start and --end")
    return 0


def _problems(options: argparse.Namespace) -> Iterator[Problem]:
    """Yield what is wrong with the options, whatever is in the folder."""
    if not options.folder:
        yield Problem("RUN_FOLDER", None, "is missing: the folder that a run has left")
        return
    if options.config_dir is not None and not options.config_dir.is_dir():
        yield Problem("--config-dir", str(options.config_dir), "there is no such folder")
    yield from misnamed(options.out, PAGE_ENDINGS, "a page")
    yield from overwritten(options.out, [Path(options.folder)], ("page.html", "index.html"))
