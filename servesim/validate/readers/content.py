"""What a file of measurements holds: one JSON value, JSON line by line, or a CSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from servesim.validate.readers.problems import Findings, refuse


class Row(NamedTuple):
    """A row of a file: the number of its line, and its cells by column.

    A report in sections, such as AIPerf's, has no columns: its cells have their numbers for names.
    """

    line: int
    cells: dict[str, Any]


class Content(NamedTuple):
    """A file that has been read: ``value`` is one JSON value, or None where ``rows`` are its lines.

    ``header`` are the columns of a CSV, in their order; of JSON lines the keys of the first one.
    """

    path: Path
    value: Any
    header: Sequence[str] = ()
    rows: Sequence[Row] = ()
    name: str = ""

    @property
    def source(self) -> str:
        """Return what the file is called: its name, unless it was given another."""
        return self.name or self.path.name


def read_content(path: Path) -> Content:
    """Return what a file holds.

    Raises:
        ConfigError: it cannot be read, or is none of the three, listing the lines that are wrong.
    """
    text = _text(path)
    if not text.strip():
        refuse(str(path), "is an empty file")
    if text.lstrip()[0] not in "{[":
        return _csv(path, text)
    try:
        return Content(path, json.loads(text))
    except json.JSONDecodeError as error:
        lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
        if len(lines) < 2 or not _is_object(lines[0][1]):
            refuse(str(path), f"is no JSON: {error}")
    except RecursionError:
        refuse(str(path), "is no JSON that can be read: nested too deeply")
    return _json_lines(path, lines)


def _text(path: Path) -> str:
    try:
        return path.expanduser().read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        refuse(str(path), "no such file; overrides are written key=value")
    except IsADirectoryError:
        refuse(str(path), "is a folder, not a file of measurements")
    except OSError as error:
        refuse(str(path), f"cannot be read: {error.strerror}")
    except UnicodeDecodeError:
        refuse(str(path), "is not text in UTF-8 (unpack it first if it is compressed)")


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except json.JSONDecodeError:
        return False


def _json_lines(path: Path, lines: Sequence[tuple[int, str]]) -> Content:
    findings, rows = Findings(path.name), []
    for number, line in lines:
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            findings.add(f"line {number}", line, f"is no JSON: {error.msg}")
            continue
        if isinstance(value, dict):
            rows.append(Row(number, value))
        else:
            findings.add(f"line {number}", line, "must be an object, {...}")
    findings.check()
    return Content(path, None, list(rows[0].cells), rows)


def _csv(path: Path, text: str) -> Content:
    """Read a CSV; one whose first column is ``Metric`` is a report in sections, its first line a row, too."""
    reader = csv.reader(StringIO(text, newline=""), skipinitialspace=True)
    try:
        lines = [(reader.line_num, cells) for cells in reader if any(cell.strip() for cell in cells)]
    except csv.Error as error:
        refuse(str(path), f"is not a CSV file: {error}")
    header = [name.strip() for name in lines[0][1]]
    if header[0] == "Metric":
        report = [Row(number, {str(at): cell for at, cell in enumerate(cells)}) for number, cells in lines]
        return Content(path, None, header, report)
    findings = Findings(path.name)
    if twice := sorted({name for name in header if header.count(name) > 1}):
        findings.add(f"line {lines[0][0]}", ",".join(header), f"names a column twice: {', '.join(twice)}")
    rows = []
    for number, cells in lines[1:]:
        if len(cells) == len(header):
            rows.append(Row(number, dict(zip(header, cells, strict=True))))
        else:
            findings.add(
                f"line {number}", ",".join(cells), f"must have {len(header)} cells, as the header has"
            )
    findings.check()
    return Content(path, None, header, rows)
