"""Run studies, and write the table and the figures of each into its folder.

Usage: python -m experiments [STUDY ...]      all of them: some minutes; sweeps/ keeps what has been run
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from experiments.pictures import Draw, drawing
from experiments.studies import STUDIES, Study
from experiments.tables import table
from servesim.cli import main as servesim
from servesim.report.frontier.page import Drawing, Sweep
from servesim.sweeps.study import Study as Description
from servesim.sweeps.sweep import STUDY
from servesim.sweeps.table import read_table

HERE = Path(__file__).parent
_BEGIN, _END = "<!-- table -->\n", "<!-- end of the table -->\n"
_WIDTH, _PANEL = 840, (560, 420)


def main(arguments: list[str]) -> int:
    """Make the studies that are named, or all; return the worst exit status of their sweeps."""
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("studies", nargs="*", metavar="STUDY")
    asked = parser.parse_args(arguments).studies
    known = [study.name for study in STUDIES]
    if unknown := [name for name in asked if name not in known]:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
    worst = 0
    with drawing() as draw:
        if draw is None:
            print("no playwright or no chromium: the figures are left as they are", file=sys.stderr)
        for study in STUDIES:
            if not asked or study.name in asked:
                worst = max(worst, servesim([f"experiment={study.name}"]))
                write(study, Path("sweeps", study.name), HERE / study.name, draw)
    return worst


def read(folder: Path) -> Sweep:
    """Return the sweep that a folder holds."""
    said = Description.read(folder / STUDY)
    load = said.load.key if said.load else None
    rows = read_table(folder)
    return Sweep(rows, folder.name, said.question, said.overrides, said.compare, said.baseline, load)


def write(study: Study, swept: Path, folder: Path, draw: Draw | None) -> None:
    """Write what was swept into the folder of a study: its table into the README, and figures beside it."""
    sweep = read(swept)
    text = f"{table(Drawing.of(replace(sweep, compare=study.columns)), study.columns, study.difference)}\n"
    readme = folder / "README.md"
    readme.write_text(between(readme.read_text(encoding="utf-8"), text), encoding="utf-8")
    if draw is not None:
        for name, figure in study.figures(sweep).items():
            size = _PANEL if study.panels else (_WIDTH, study.height)
            draw(figure, folder / f"{name}.svg", *size)


def between(text: str, rows: str) -> str:
    """Return a README with other rows between its marks."""
    before, begin, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise ValueError(f"needs {_BEGIN.strip()} and {_END.strip()}")
    return f"{before}{begin}\n{rows}\n{end}{after}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
