"""Compare servesim with every set of measured runs, and write the tables of the answer.

Usage: python -m experiments.validation DATA [--pages DIR]     DATA is the folder with the sets; some minutes
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from experiments.validation.closed_loops import closed_loops
from experiments.validation.disaggregated import ten_thousand_in
from experiments.validation.requests import llm_d, rtx_pro_6000
from experiments.validation.score import Part, headline
from experiments.validation.static import splitwise
from experiments.validation.steps import sarathi

HERE = Path(__file__).parent


def main(arguments: list[str]) -> int:
    """Make the comparison, and write what it found into the answer."""
    parser = argparse.ArgumentParser(prog="python -m experiments.validation", description=__doc__)
    parser.add_argument("data", type=Path, metavar="DATA")
    parser.add_argument("--pages", type=Path, default=Path("validation"))
    asked = parser.parse_args(arguments)
    found = list(parts(asked.data))
    for part in found:
        for name, page in part.pages.items():
            folder = asked.pages / name
            folder.mkdir(parents=True, exist_ok=True)
            page.write(folder / "index.html")
    lines = list(headline(found))
    print(*lines, sep="\n")
    write(HERE / "README.md", "\n".join(lines))
    write(HERE / "ROWS.md", "\n\n".join(rows(found)))
    return 0


def parts(data: Path) -> Iterator[Part]:
    """Yield what each set of measured runs says."""
    yield from closed_loops(data)
    for part in (rtx_pro_6000, llm_d, ten_thousand_in, sarathi, splitwise):
        yield part(data)


def rows(found: list[Part]) -> Iterator[str]:
    """Yield the tables of all rows, each under its heading."""
    for part in found:
        yield f"## {part.name}"
        for title, table in part.tables.items():
            yield f"{title}:"
            yield in_markdown(table)


def in_markdown(table: pd.DataFrame) -> str:
    """Return a table in Markdown, numbers to the right."""
    cells = [[_cell(value) for value in row] for row in table.itertuples(index=False)]
    sides = ["--:" if pd.api.types.is_numeric_dtype(kind) else "---" for kind in table.dtypes]
    lines = [[str(name).strip() for name in table.columns], sides, *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: object) -> str:
    return "" if isinstance(value, float) and pd.isna(value) else str(value)


def write(path: Path, text: str) -> None:
    """Write a text between the marks of a file.

    Raises:
        ValueError: the file has no marks.
    """
    before, begin, rest = path.read_text(encoding="utf-8").partition("<!-- tables -->\n")
    _, end, after = rest.partition("<!-- end of the tables -->\n")
    if not begin or not end:
        raise ValueError(f"{path} needs its two marks")
    path.write_text(f"{before}{begin}\n{text}\n\n{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
