"""The verb ``servesim trace``: what a trace is like, in another format, or the timeline of a run."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from math import inf, isnan
from pathlib import Path

import numpy as np

from servesim import pictures
from servesim.arguments import Arguments
from servesim.check import ConfigError, Problem, problems
from servesim.outputs import misnamed, overwritten
from servesim.screen.console import console
from servesim.screen.figures import counted
from servesim.screen.trace import print_trace
from servesim.words import listed
from servesim.workload.description import Description
from servesim.workload.formats import Options, Recording, read
from servesim.workload.formats.options import TimedTrace
from servesim.workload.formats.recognition import FORMATS
from servesim.workload.formats.writers import WRITERS, write

_HELP = """\
servesim trace FILE [options]: what a trace is like, or the same trace in another format.
servesim trace RUN_FOLDER [options]: the timeline of a run, or its requests as a trace.

  servesim trace trace.csv                                       rate, burstiness, lengths, shared prefixes
  servesim trace trace.csv --out trace.html                      and drawn, as a page that needs no network
  servesim trace trace.csv --to mooncake --out trace.jsonl       in another format
  servesim trace runs/2026-01-31_12-00-00                        writes timeline.json into the folder, for
                                                                 https://ui.perfetto.dev
  servesim trace runs/2026-01-31_12-00-00 --start 60 --end 90    the half minute from second 60 on
  servesim trace runs/2026-01-31_12-00-00 --to mooncake --out mine.jsonl

  --start S           from this second on (the first request)
  --end S             up to this second (the end)
  --out FILE          where to write the page (.html), the timeline (.json) or the trace (.gz packs it)
  --to FORMAT         {written}
                      (native: .csv, .jsonl or .parquet); what it cannot hold is told
  --format FORMAT     what FILE is, instead of finding out by what is in it:
                      {read}
  --tokenizer FILE    the tokenizer.json that counts the tokens of sharegpt
  --characters-per-token N    of sharegpt without a tokenizer (4)
  --timed-trace-chunk-hash-size N and so on    the layout of vllm_timed, as vllm bench serve has it
"""


def trace(arguments: Sequence[str]) -> int:
    """Do what ``arguments`` (those after the verb) ask for; return the exit status.

    Raises:
        ConfigError: listing what is wrong with the input.

    """
    options = _parser().parse_args(arguments)
    if options.help:
        written, known = (", ".join(formats) for formats in (WRITERS, FORMATS))
        print(_HELP.format(written=written, read=known))
        return 0
    if not options.path:
        raise ConfigError([Problem("FILE", None, "is missing: a trace, or the folder that a run has left")])
    options.path = Path(options.path)
    if found := [*_problems(options), *_misplaced(options)]:
        raise ConfigError(found)
    if options.path.is_dir():
        return _of_a_run(options)
    recording = _windowed(_read(options), options)
    if options.to is not None:
        return _convert(recording, options)
    _describe(recording, options)
    return 0


def _parser() -> Arguments:
    parser = Arguments("servesim trace")
    parser.add_argument("path", nargs="?")
    parser.add_argument("--start", type=float)
    parser.add_argument("--end", type=float)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--to")
    parser.add_argument("--format", default="auto")
    parser.add_argument("--tokenizer")
    parser.add_argument("--characters-per-token", type=float, default=Options().characters_per_token)
    for name, value in asdict(TimedTrace()).items():
        parser.add_argument(_flag(f"timed_trace.{name}"), type=type(value), default=value)
    parser.add_argument("-h", "--help", action="store_true")
    return parser


def _flag(key: str) -> str:
    """Return the option that sets a key: timed_trace.sec_multiplier, --timed-trace-sec-multiplier."""
    return f"--{key.replace('_', '-').replace('.', '-')}"


def _told(options: argparse.Namespace) -> Options:
    """Return what the readers are told."""
    labels = {name: getattr(options, f"timed_trace_{name}") for name in asdict(TimedTrace())}
    return Options(TimedTrace(**labels), options.tokenizer, options.characters_per_token)


def _problems(options: argparse.Namespace) -> Iterator[Problem]:
    """Yield what is wrong with the options, whatever is in the file."""
    for name in ("start", "end"):
        if (value := getattr(options, name)) is not None and isnan(value):
            yield Problem(f"--{name}", value, "must be a number")
    for name, known in (("to", [*WRITERS]), ("format", ["auto", *FORMATS])):
        if (value := getattr(options, name)) is not None and value not in known:
            yield Problem(f"--{name}", value, f"must be {listed(known)}")
    if options.to is not None and options.out is None:
        yield Problem("--out", None, f"is missing: the file to be written as {options.to}")
    for problem in problems(_told(options)):
        yield replace(problem, path=_flag(problem.path))
    if options.path.is_dir():
        yield from _for_files_only(options)


def _for_files_only(options: argparse.Namespace) -> Iterator[Problem]:
    """Yield the options that say how a file is read: the folder of a run says it itself."""
    defaults = vars(_parser().parse_args([]))
    for name in (
        "format",
        "tokenizer",
        "characters_per_token",
        *(f"timed_trace_{each}" for each in asdict(TimedTrace())),
    ):
        if (value := getattr(options, name)) != defaults[name]:
            yield Problem(_flag(name), value, "is for the file of a trace, not for the folder of a run")


def _misplaced(options: argparse.Namespace) -> Iterator[Problem]:
    """Yield why what is asked for must not be written to ``--out``."""
    own: tuple[str, ...] = ()
    if options.to is not None:
        yield from misnamed(options.out, (), "the trace")
    elif options.path.is_dir():
        own = ("timeline.json",)
        yield from misnamed(options.out, pictures.TIMELINE_ENDINGS, "a timeline")
    else:
        yield from misnamed(options.out, pictures.PAGE_ENDINGS, "a page")
    tokenizer = [Path(options.tokenizer)] if options.tokenizer else []
    yield from overwritten(options.out, [options.path, *tokenizer], own)


def _read(options: argparse.Namespace) -> Recording:
    """Return the recording of the file; what is wrong with it is told of the file, or of an option."""
    try:
        return read(options.path, options.format, **vars(_told(options)))
    except ConfigError as error:
        found = [replace(each, path=_place(each.path, options.path)) for each in error.problems]
        raise ConfigError(found) from None


def _place(path: str, file: Path) -> str:
    """Return where a problem of :func:`read` is: in the file, in a line of it, or in an option."""
    if path == "path":
        return "FILE"
    first, comma, rest = path.partition(",")
    return f"{file if first == 'path' else _flag(first)}{comma}{rest}"


def _windowed(recording: Recording, options: argparse.Namespace) -> Recording:
    """Return the requests from ``--start`` up to ``--end``, in seconds after the earliest.

    Sessions are in or out as a whole, by the time of their first request, as ``workload.start_s`` has it.
    """
    asked = {f"--{name}": getattr(options, name) for name in ("start", "end")}
    given = {name: value for name, value in asked.items() if value is not None}
    if not given:
        return recording
    if not recording.timed:
        message = "chooses requests by their times, and the file has none"
        raise ConfigError([Problem(name, value, message) for name, value in given.items()])
    begun_ns = recording.begun_ns
    elapsed_s = (begun_ns - begun_ns.min()) / 1e9
    inside = (elapsed_s >= (options.start or 0.0)) & (
        elapsed_s < (inf if options.end is None else options.end)
    )
    if not inside.any():
        last_s = float(elapsed_s.max())
        message = f"no request is in the window up to --end; the trace is {last_s:g} s long"
        raise ConfigError([Problem("--start", options.start, message)])
    return recording.taken(np.flatnonzero(inside))


def _describe(recording: Recording, options: argparse.Namespace) -> None:
    """Print what a trace is like; draw it where there is a place for that."""
    description = Description(recording)
    if options.out is not None:
        from servesim.report.trace.page import trace_page

        trace_page(options.path.name, description).write(options.out)
    print_trace(options.path.name, description, console(), options.out)


def _of_a_run(options: argparse.Namespace) -> int:
    """Write the timeline of a run, or its requests as a trace."""
    if options.to is None:
        return pictures.timeline(options.path, options.start, options.end, options.out)
    from servesim.report.run.saved import Run
    from servesim.retold import retold

    run = Run.read(options.path)
    if run.requests.empty:
        raise ConfigError([Problem("RUN_FOLDER", str(options.path), "has no request")])
    return _convert(_windowed(retold(run, options.to), options), options)


def _convert(recording: Recording, options: argparse.Namespace) -> int:
    """Write a trace in another format, and print what that changes."""
    changes = write(recording, options.to, options.out)
    print(f"{options.out}: {counted(recording.size, 'request')} as {options.to}")
    for line in (*recording.remarks, *changes):
        print(f"  {line}")
    return 0
