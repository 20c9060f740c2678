"""The command ``servesim experiment=NAME``: a study, run or gone on with, and what it found."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from servesim.check import ConfigError, Problem
from servesim.config.groups import Groups
from servesim.config.names import nearest
from servesim.config.overrides import place
from servesim.frontier.chosen import DECIDING, best_loads, common_loads
from servesim.frontier.replications import brackets, compared, over_seeds, settings
from servesim.screen.console import console
from servesim.screen.figures import counted
from servesim.screen.idle import idle
from servesim.screen.notes import FREE_TIERS
from servesim.screen.progress import points_bar
from servesim.screen.sweep import Column, Rows, counts, error_lines, print_sweep
from servesim.screen.words import formats
from servesim.sweeps.flat import unflatten
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
#: Columns of what may have an effect or none.
_LOOKED_AT = ("scenario.router.", "scenario.scheduler.", "scenario.workload.")
#: A figure that only runs with KV tiers have.
_LOADED = "offload.loaded_tokens"
_FOLDER = "hydra.sweep.dir"
#: Seeds from which on Student's interval says something: of two, it is 12.7 standard errors wide.
_FEWEST_SEEDS = 3


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
    means = over_seeds(table, list(dict.fromkeys([*figures, *DECIDING])))
    keys = settings(table)
    rows = means if study.load is None else best_loads(means, keys[:-1])
    notes = [
        *_on_the_formats(table),
        *_on_the_scenarios(table),
        *_on_the_seeds(study),
        *_on_the_loads(study, means, rows),
    ]
    failed = table[table["status"] == FAILED]
    errors = {str(error): list(each["command"]) for error, each in failed.groupby("error", sort=False)}
    ends = [*error_lines(errors), counts(list(table["status"]), known)]
    ends += [f"Files: {folder}/", f"Page: {folder / PAGE}"]
    shown = [key for key in keys if key != "variant" or study.variants]
    labels = {_short(key, shown): list(rows[key]) for key in shown} or {"": [""] * len(rows)}
    if study.load is not None and rows["pooled"].notna().any():
        within = brackets(means, keys[:-1], study.load.key)
        places = rows[keys[:-1]].itertuples(index=False, name=None)
        labels["SLO"] = [str(within.get(tuple(place), "-")) for place in places]
    columns = [
        Column(name, list(zip(rows[name], rows[f"{name}.low"], rows[f"{name}.high"], strict=True)))
        for name in figures
    ]
    if study.question:
        print(f"{study.question}\n")
    print_sweep(Rows(labels, columns), notes, _differences(study, table, means, figures), ends, console())


def _on_the_formats(table: pd.DataFrame) -> Iterator[str]:
    """Yield the formats of weights and KV cache, where all points have the same."""
    names = ["scenario.model.weights_dtype", "scenario.scheduler.kv_cache_dtype"]
    if set(names) <= set(table):
        found = set(table[names].dropna().itertuples(index=False, name=None))
        for weights, kv in found if len(found) == 1 else ():
            scenario = {"model": {"weights_dtype": weights}, "scheduler": {"kv_cache_dtype": kv}}
            yield f"all have {formats(scenario)}"


def _on_the_scenarios(table: pd.DataFrame) -> Iterator[str]:
    """Yield what there is to say of the files and flags that configurations were read from, each once.

    And of the settings that have no effect in any of them.
    """
    said = table.get("scenario.notes")
    lists = [] if said is None else [json.loads(each) for each in said.dropna().unique()]
    yield from dict.fromkeys(note for notes in lists for note in notes)
    if _LOADED in table and table[_LOADED].notna().any():
        yield FREE_TIERS
    names = [name for name in map(str, table) if name.startswith(_LOOKED_AT)]
    rows = table.loc[table["status"] != FAILED, names].drop_duplicates().to_dict("records")
    told = ({str(name): value for name, value in row.items() if pd.notna(value)} for row in rows)
    yield from idle(unflatten(row)["scenario"] for row in told)


def _on_the_seeds(study: Study) -> Iterator[str]:
    """Yield what the intervals are, and whether there are too few seeds for them."""
    seeds = len(study.each_seed)
    if seeds > 1:
        yield f"± half a 95% interval over {seeds} seeds"
    if seeds < _FEWEST_SEEDS:
        words = "one seed has no interval" if seeds == 1 else "two seeds have very wide ones"
        yield f"{words}: experiment.seeds={_FEWEST_SEEDS} or more tells a difference from chance"


def _on_the_loads(study: Study, means: pd.DataFrame, rows: pd.DataFrame) -> Iterator[str]:
    """Yield at which of its loads each configuration is shown, and how many of all are too short a run."""
    if study.load is not None:
        which = "cheapest that meets the SLO, else the one with the most goodput"
        if rows["pooled"].isna().all():
            which = "one with the most requests done"
        yield f"at the {study.load.key} that is the {which}; all of them are in the table"
    unsettled = int((~means["settled"].astype(bool)).sum())
    if unsettled:
        points = f"{unsettled} of {counted(len(means), 'point')}"
        yield f"{points} unsettled, too short a run for a steady part, and never best: more workload.requests"


def _differences(study: Study, table: pd.DataFrame, means: pd.DataFrame, figures: Sequence[str]) -> Rows:
    """Return how each variant differs from the baseline in every figure, where both were run.

    On a load axis that found itself, that is one load of each: see
    :func:`~servesim.frontier.chosen.common_loads`.
    """
    if study.baseline is None or len(study.variants) < 2:
        return Rows({}, [])
    keys = settings(table)
    where = means[keys]
    if study.load is not None:
        where = where.merge(common_loads(means, keys[1:], study.baseline))
    each = [compared(table, figure, study.baseline) for figure in figures]
    known = pd.concat([found.loc[found["n"] > 0, keys] for found in each]).drop_duplicates()
    where = where.merge(known)
    columns = []
    for figure, differences in zip(figures, each, strict=True):
        found = where.merge(differences, on=keys, how="left")
        columns.append(
            Column(figure, list(zip(found["difference"], found["low"], found["high"], strict=True)))
        )
    minus = f"less {study.baseline}"
    labels = {minus if key == "variant" else _short(key, keys): list(where[key]) for key in keys}
    return Rows(labels, columns, signed=True)


def _short(key: str, keys: Sequence[str]) -> str:
    """Return the last name of a key, where no other one ends in it."""
    last = key.replace("/", ".").rpartition(".")[2]
    alike = [other for other in keys if other.replace("/", ".").rpartition(".")[2] == last]
    return last if len(alike) == 1 else key
