"""The command ``servesim experiment=NAME``: a study, run or gone on with, and what it found."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from string import ascii_uppercase

import pandas as pd

from servesim.check import ConfigError, Problem
from servesim.config.groups import Groups
from servesim.config.names import nearest
from servesim.config.overrides import place
from servesim.frontier.replications import compared, over_seeds, settings
from servesim.screen.console import console
from servesim.screen.figures import counted, signed
from servesim.screen.progress import points_bar
from servesim.screen.sweep import Column, counts, error_lines, print_sweep
from servesim.sweeps.grid import folded, grid
from servesim.sweeps.point import FAILED
from servesim.sweeps.study import GROUP, Study, load_study
from servesim.sweeps.sweep import PAGE, STUDY, run_study
from servesim.sweeps.table import frame_of

CLEAN, NOT_CLEAN = 0, 3

#: The figures that are shown where a study names none.
FIGURES = (
    "latency.ttft_s.p99",
    "latency.tpot_s.p99",
    "throughput.output_tokens_per_s_per_gpu",
    "goodput.attainment",
    "cost.usd_per_million_output_tokens",
)
_FOLDER = "hydra.sweep.dir"
_MOST = 0.5
_GOOD, _DONE = "goodput.requests_per_s", "throughput.requests_per_s"


def run(options: argparse.Namespace) -> int:
    """Run the study that a command line asks for, and return the exit status: 3 where a point failed.

    Raises:
        ConfigError: listing everything that is wrong.

    """
    groups = Groups.of(options.config_dir)
    choice, settings, typed = _sorted_out(options)
    name = choice.partition("=")[2]
    study = folded(load_study([choice, *settings], groups, options.config_dir), typed, groups)
    folder = _folder(options.overrides) or Path("sweeps", name)
    print(f"{name}: {_size(study, groups)}, in {folder}/", file=sys.stderr)
    with points_bar(console(stderr=True)) as tell:
        swept = run_study(study, groups, options.config_dir, folder, progress=tell)
    table = frame_of(swept.table)
    _check_figures(study, table)
    _draw(study, table, folder)
    _show(study, table, swept.known, folder)
    return NOT_CLEAN if (table["status"] == FAILED).any() else CLEAN


def _sorted_out(options: argparse.Namespace) -> tuple[str, list[str], list[str]]:
    """Return the choice of the study, what changes the study itself, and all that holds for its points."""
    texts = [text for text in options.overrides if not text.startswith(f"{_FOLDER}=")]
    choices = [text for text in texts if place(text) == GROUP]
    own = [text for text in texts if place(text).startswith(f"{GROUP}.")]
    rest = [text for text in texts if text not in choices and text not in own]
    found = [Problem(text, None, "is not an override; write key=value") for text in rest if "=" not in text]
    found += [
        Problem(
            text.partition("=")[0], None, f"has no effect on a study; {_FOLDER}=FOLDER says where it goes"
        )
        for text in rest
        if text.startswith(("hydra.", "hydra/"))
    ]
    if f"{_FOLDER}=" in options.overrides:
        found.append(Problem(f"{_FOLDER}=", None, "names no folder"))
    if len(choices) > 1 or "," in choices[0]:
        found.append(Problem(GROUP, ", ".join(choices), "one study at a time"))
    if options.multirun:
        found.append(Problem("-m", None, "a study runs all its points by itself; leave -m out"))
    if options.config_name:
        found.append(Problem("--config-name", options.config_name, "has no effect on a study"))
    if found:
        raise ConfigError(found)
    return choices[0], own, rest


def _folder(overrides: Sequence[str]) -> Path | None:
    given = [text.partition("=")[2] for text in overrides if text.startswith(f"{_FOLDER}=")]
    return Path(given[-1]) if given else None


def _size(study: Study, groups: Groups) -> str:
    """Return how many points a study has, and why."""
    configurations, seeds = len(grid(study, groups).configurations), len(study.each_seed)
    loads = study.load.points if study.load else 1
    factors = {"configurations": configurations, "loads": loads, "seeds": seeds}
    product = " x ".join(f"{count:,} {noun}" for noun, count in factors.items() if count > 1)
    total = counted(configurations * loads * seeds, "point")
    budget = study.load.seconds if study.load else None
    limit = f", as many as {budget:g} s allow: the loads depend on this machine's speed" if budget else ""
    return f"{'at most ' if study.load else ''}{total}{f' ({product})' if ' x ' in product else ''}{limit}"


def _check_figures(study: Study, table: pd.DataFrame) -> None:
    """Raise where a study compares figures that no run has; what has been run is kept."""
    if (table["status"] == FAILED).all():
        return
    known = list(table.columns[list(table.columns).index("hash") + 1 :])
    unknown = [name for name in study.compare if name not in known]
    close = {name: nearest(name, known) for name in unknown}
    if unknown:
        raise ConfigError(
            Problem("compare", name, "is no figure" + (f"; did you mean {near}?" if near else ""))
            for name, near in close.items()
        )


def _draw(study: Study, table: pd.DataFrame, folder: Path) -> None:
    """Write the page, unless the one that is there was drawn from the files that are there."""
    page = folder / PAGE
    if not page.exists() or page.stat().st_mtime_ns < (folder / STUDY).stat().st_mtime_ns:
        from servesim.report.frontier.page import write_page  # plotly takes long to import

        write_page(folder, study, table)


def _show(study: Study, table: pd.DataFrame, known: int, folder: Path) -> None:
    """Print one row per configuration, the differences from the baseline, and where everything is."""
    figures = list(study.compare or FIGURES)
    means = over_seeds(table, [*figures, _GOOD, _DONE])
    keys = settings(table)
    rows = means if study.load is None else _best(means, keys[:-1])
    notes = [f"{letter}  {name}" for letter, name in zip(ascii_uppercase, figures, strict=False)]
    if len(study.each_seed) > 1:
        notes.append(f"± half a 95% interval over {len(study.each_seed)} seeds")
    if study.load is not None:
        notes.append(f"at the {study.load.key} with the most goodput; all of them are in the table")
    notes += ["", *_differences(study, table, means, figures[0])]
    failed = table[table["status"] == FAILED]
    errors = {str(error): list(each["command"]) for error, each in failed.groupby("error", sort=False)}
    notes += [*error_lines(errors), counts(list(table["status"]), known)]
    notes += [f"Files: {folder}/", f"Page: {folder / PAGE}"]
    shown = [key for key in keys if key != "variant" or study.variants]
    labels = {_short(key, shown): list(rows[key]) for key in shown} or {"": [""] * len(rows)}
    columns = [
        Column(letter, list(zip(rows[name], rows[f"{name}.low"], rows[f"{name}.high"], strict=True)))
        for letter, name in zip(ascii_uppercase, figures, strict=False)
    ]
    if study.question:
        print(f"{study.question}\n")
    print_sweep(labels, columns, notes, console())


def _best(means: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Return of each configuration the load with the most goodput; without an SLO, with the most done."""
    score = means[_GOOD].fillna(means[_DONE]).fillna(-1.0)
    chosen = [
        rows.idxmax() for _, rows in score.groupby([means[key] for key in keys], sort=False, dropna=False)
    ]
    return means.loc[chosen].reset_index(drop=True)


def _differences(study: Study, table: pd.DataFrame, means: pd.DataFrame, figure: str) -> Iterator[str]:
    """Yield how each variant differs from the baseline in one figure, where both were run.

    On a load axis that found itself, that is the highest load which saturates neither of them.
    """
    if study.baseline is None or len(study.variants) < 2:
        return
    found = compared(table, figure, study.baseline)
    found = found[found["n"] > 0]
    keys = [key for key in settings(table) if key != "variant"]
    if study.load is not None:
        calm = means.loc[means["saturated"].fillna(0) < _MOST, ["variant", *keys]]
        base = calm.loc[calm["variant"] == study.baseline, keys]
        found = found.merge(calm, on=["variant", *keys]).merge(base, on=keys)
        found = found.groupby(["variant", *keys[:-1]], sort=False, dropna=False).tail(1)
    for row in found.to_dict("records"):
        where = ", ".join(f"{key}={row[key]}" for key in keys)
        ends = "" if pd.isna(row["low"]) else f" [{signed(row['low'])}, {signed(row['high'])}]"
        at = f" at {where}" if where else ""
        yield f"{row['variant']} - {study.baseline}: {signed(row['difference'])}{ends} {figure}{at}"
    if len(found):
        yield ""


def _short(key: str, keys: Sequence[str]) -> str:
    """Return the last name of a key, where no other one ends in it."""
    last = key.replace("/", ".").rpartition(".")[2]
    alike = [other for other in keys if other.replace("/", ".").rpartition(".")[2] == last]
    return last if len(alike) == 1 else key
