"""The verbs ``servesim export`` and ``servesim metrics``: a run as other tools write it and tell it."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servesim.arguments import Arguments
from servesim.check import ConfigError, Problem
from servesim.files import in_one_go
from servesim.outputs import overwritten
from servesim.results.columns import GAPS
from servesim.results.dialects.known import DIALECTS, PLAIN
from servesim.results.dialects.sample import Sample
from servesim.results.export import aiperf, vllm
from servesim.results.export.about import About
from servesim.results.slo import Slo
from servesim.results.stored import Folder, table_problems
from servesim.results.summary import plain
from servesim.screen.console import console, print_lines
from servesim.screen.dialect import dialect, dialect_definitions, dialect_title
from servesim.words import listed

_EXPORT_HELP = """\
servesim export RUN_FOLDER... --to FORMAT [options]: a run in the result files of a benchmarking tool.

  servesim export runs/2026-01-31_12-00-00 --to vllm             writes vllm.json into the folder
  servesim export runs/2026-01-31_12-00-00 --to vllm-detailed    with TTFT and gaps of each request
  servesim export runs/2026-01-31_12-00-00 --to aiperf           the three files of an AIPerf profile
  servesim export runs/sweep/* --to vllm --out all/summary.json  runs as `vllm bench sweep` collects them

  --to FORMAT    vllm (`vllm bench serve --save-result`), vllm-detailed (--save-detailed) or aiperf
  --out PATH     write there instead: a file, or a folder, where vLLM's own name for the file is taken
  --date DATE    the date of vLLM's file, as 20260131-120000; without it there is none
"""
_METRICS_HELP = """\
servesim metrics RUN_FOLDER [options]: the metrics of a run as a benchmarking tool defines them.

  servesim metrics runs/2026-01-31_12-00-00 --dialect aiperf

  --dialect NAME    vllm, aiperf, guidellm or inferencex (what the run was told to speak)
"""
_FORMATS = ("vllm", "vllm-detailed", "aiperf")
#: What an export is called in the folder of its run.
_OWN = ("vllm.json", "vllm_detailed.json")
_DATE = re.compile(r"[0-9]{8}-[0-9]{6}")


@dataclass(frozen=True)
class _Saved:
    """A run from its folder."""

    folder: Path
    tables: Folder
    sample: Sample
    about: About
    dialect: str

    @classmethod
    def read(cls, folder: Path) -> _Saved:
        """Return the run that a folder holds.

        Raises:
            ConfigError: a file is missing, cannot be read, or is not as a run of this version leaves it.
        """
        from servesim.report.run.saved import Run

        try:
            summary = Run.read(folder).summary
        except ConfigError as error:
            gaps = table_problems(folder / "gaps.parquet", GAPS) if folder.is_dir() else ()
            raise ConfigError([*error.problems, *gaps]) from None
        tables = Folder(folder)
        scenario, about = summary["scenario"], About.of(summary)
        limits = {key: value for key, value in scenario["slo"].items() if key != "kind"}
        sample = Sample.of(tables, summary["duration_s"], Slo(**limits), about.gpus)
        return cls(folder, tables, sample, about, scenario.get("metrics", PLAIN))


def export(arguments: Sequence[str]) -> int:
    """Write the result files that ``arguments`` (those after the verb) ask for; return the exit status.

    Raises:
        ConfigError: listing what is wrong with the input.

    """
    parser = Arguments("servesim export")
    parser.add_argument("folders", type=Path, nargs="*")
    parser.add_argument("--to")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--date")
    parser.add_argument("-h", "--help", action="store_true")
    options = parser.parse_intermixed_args(arguments)
    if options.help:
        print(_EXPORT_HELP)
        return 0
    if found := list(_wrong(options.folders, options.to, options.out, options.date)):
        raise ConfigError(found)
    runs = _read(options.folders)
    files = _aiperf(runs[0]) if options.to == "aiperf" else _vllm(runs, options.to, options.date)
    for path, parts in _placed(runs[0], options, files):
        with in_one_go(path) as place, place.open("w", encoding="utf-8", newline="") as file:
            file.writelines(parts)
        print(path)
    return 0


def metrics(arguments: Sequence[str]) -> int:
    """Print the metrics of a run that ``arguments`` (those after the verb) ask for; return the exit status.

    Raises:
        ConfigError: listing what is wrong with the input.

    """
    parser = Arguments("servesim metrics")
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--dialect")
    parser.add_argument("-h", "--help", action="store_true")
    options = parser.parse_intermixed_args(arguments)
    if options.help:
        print(_METRICS_HELP)
        return 0
    if found := [*_missing([options.folder] if options.folder else []), *_odd_dialect(options.dialect)]:
        raise ConfigError(found)
    saved = _Saved.read(options.folder)
    section = plain(DIALECTS[options.dialect or saved.dialect].section(saved.sample))
    definitions = "", "Definitions", dialect_definitions(section)
    print_lines(console(), f"{saved.folder}: {dialect_title(section)}", dialect(section), *definitions)
    return 0


def _read(folders: Sequence[Path]) -> list[_Saved]:
    """Return the runs that folders hold.

    Raises:
        ConfigError: listing what is wrong with any of them.
    """
    runs: list[_Saved] = []
    found: list[Problem] = []
    for folder in folders:
        try:
            runs.append(_Saved.read(folder))
        except ConfigError as error:
            found += error.problems
    if found:
        raise ConfigError(found)
    return runs


def _wrong(folders: Sequence[Path], to: str | None, out: Path | None, date: str | None) -> Iterator[Problem]:
    """Yield what is wrong with the options of an export."""
    yield from _missing(folders)
    if to not in _FORMATS:
        yield Problem("--to", to, f"must be {listed(_FORMATS)}")
    elif len(folders) > 1 and to != "vllm":
        yield Problem("--to", to, "takes one run; several go into one file of the format vllm")
    elif len(folders) > 1 and out is None:
        yield Problem("--out", None, "is missing: the file that is to hold several runs")
    elif len(folders) > 1 and out is not None and out.is_dir():
        yield Problem("--out", str(out), "is a folder: name the file that is to hold several runs")
    yield from overwritten(out, folders, _OWN)
    if date is not None and to == "aiperf":
        yield Problem("--date", date, "goes with vllm and vllm-detailed")
    elif date is not None and not _DATE.fullmatch(date):
        yield Problem("--date", date, "must be like 20260131-120000")


def _missing(folders: Sequence[Path]) -> Iterator[Problem]:
    if not folders:
        yield Problem("RUN_FOLDER", None, "is missing: the folder that a run has left")


def _odd_dialect(name: str | None) -> Iterator[Problem]:
    if name is not None and name not in DIALECTS:
        yield Problem("--dialect", name, f"must be {listed(DIALECTS)}")


def _vllm(runs: Sequence[_Saved], to: str, date: str | None) -> dict[str, Iterable[str]]:
    """Return the text of vLLM's file by its name: one result, or a list of several."""
    detailed = to == "vllm-detailed"
    results = [
        plain(vllm.bench_result(run.sample, run.about, date, run.tables if detailed else None))
        for run in runs
    ]
    name = "vllm_detailed.json" if detailed else "vllm.json"
    return {name: [_json(results if len(runs) > 1 else results[0], None if detailed else 2)]}


def _aiperf(run: _Saved) -> dict[str, Iterable[str]]:
    """Return the texts of AIPerf's files by their names."""
    whole = plain(aiperf.summary_json(run.sample, run.about, run.tables))
    return {
        "profile_export_aiperf.json": [_json(whole, 2)],
        "profile_export_aiperf.csv": [aiperf.summary_csv(run.sample)],
        "profile_export.jsonl": (_json(each, None) for each in aiperf.records(run.sample, run.tables)),
    }


def _placed(
    run: _Saved, options: argparse.Namespace, files: dict[str, Iterable[str]]
) -> Iterator[tuple[Path, Iterable[str]]]:
    """Yield where each text goes."""
    out: Path | None = options.out
    for name, parts in files.items():
        if options.to == "aiperf":
            yield (out or run.folder / "aiperf") / name, parts
        elif out is not None and out.is_dir():
            yield out / vllm.file_name(run.about, options.date), parts
        else:
            yield out or run.folder / name, parts


def _json(value: Any, indent: int | None) -> str:
    return json.dumps(value, indent=indent, allow_nan=False) + "\n"
