"""Tables of requests, one a row: a CSV, or JSON lines, with columns of several spellings and units.

TTFT and E2E may be there as such, or follow from others: E2E from TTFT and the time of the further tokens
(``generation_time``) or the mean time of each (``tpot``); both from the moments at which an engine queued a
request and emitted its first and last token.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from servesim.validate.measured import Floats, Measured, in_order
from servesim.validate.readers.content import Content, Row
from servesim.validate.readers.hardware import hardware
from servesim.validate.readers.problems import Findings, as_number, refuse
from servesim.validate.readers.spelling import REQUESTS, Column, named
from servesim.words import listed

#: Moments further apart than this (s) are not of one clock: some machine's, and that of the world.
_ANOTHER_CLOCK_S = 1e6
_SUCCESS = {"true", "1", "yes", "ok", "success", "successful", "succeeded", "completed", "complete", "200"}


def is_table(header: Sequence[str]) -> bool:
    """Tell whether columns are those of requests: lengths, and a moment of sending or of queueing."""
    columns = named(header, REQUESTS)
    return {"input", "output"} <= columns.keys() and bool({"arrival", "queued"} & columns.keys())


def read_table(content: Content, rows: Sequence[Row], source: str) -> Measured:
    """Return the run of a table's rows (all, or those chosen of it), called ``source``.

    Raises:
        ConfigError: listing the lines that are wrong.
    """
    columns = named(content.header, REQUESTS)
    if not rows:
        refuse(source, "has no rows")
    findings = Findings(content.source)
    good = [row for row in rows if _succeeded(row, columns)]
    table = _Table(good, columns, findings)
    tokens = {name: table.tokens(name) for name in ("input", "output")}
    sent_s = table.sent_s()
    ttft_s, e2e_s = table.ttft_s(sent_s), table.e2e_s(sent_s)
    findings.check()
    if not good:
        refuse(source, f"all {len(rows):,} requests failed")
    if np.isnan(ttft_s).all() and np.isnan(e2e_s).all():
        refuse(source, "has neither TTFT nor E2E: nothing to compare")
    notes = [*table.notes, *_on_the_columns(columns), *_on_what_is_missing(ttft_s, e2e_s)]
    notes += _on_what_is_not_read(content.header, columns)
    ordered = in_order(
        sent_s, input_tokens=tokens["input"], output_tokens=tokens["output"], ttft_s=ttft_s, e2e_s=e2e_s
    )
    server: dict[str, Any] = hardware(_constant(content, good))
    failed = len(rows) - len(good)
    return Measured(source, "table of requests", **ordered, failed=failed, notes=tuple(notes), **server)


def _on_what_is_not_read(header: Sequence[str], columns: Mapping[str, Column]) -> Iterator[str]:
    """Yield the columns that say again what another one says."""
    taken = {column.name for column in columns.values()}
    for name in header:
        again = named([name], REQUESTS)
        if name not in taken and (meaning := next(iter(again), None)) is not None:
            yield f"not read: {name}, as {columns[meaning].name} says it"


def _constant(content: Content, rows: Sequence[Row]) -> dict[str, Any]:
    """Return the cells of columns in which all rows have the same."""
    first = rows[0].cells
    return {
        name: first.get(name)
        for name in content.header
        if all(row.cells.get(name) == first.get(name) for row in rows)
    }


class _Table:
    """The columns of a table, read as they are asked for."""

    def __init__(self, rows: Sequence[Row], columns: Mapping[str, Column], findings: Findings) -> None:
        self._rows, self._columns, self._findings = rows, columns, findings
        self.notes: list[str] = []

    def has(self, *names: str) -> bool:
        """Tell whether the table has all these columns."""
        return all(name in self._columns for name in names)

    def tokens(self, name: str) -> Any:
        """Return a column of lengths."""
        return self._findings.tokens(self._values(name), self._place(name))

    def times(self, name: str) -> Floats:
        """Return a column of moments (s)."""
        return self._findings.times(self._values(name), self._place(name), self._columns[name].seconds)

    def numbers(self, name: str) -> Floats:
        """Return a column of durations (s), or of moments that may be missing."""
        return self._findings.numbers(self._values(name), self._place(name), self._columns[name].seconds)

    def sent_s(self) -> Floats:
        """Return when requests were sent; on an engine's clock, when it queued them."""
        if not self.has("arrival"):
            return self.times("queued")
        sent_s = self.times("arrival")
        if self.has("queued", "first_token") and self._is_another_clock(sent_s):
            arrival, queued = self._columns["arrival"].name, self._columns["queued"].name
            self.notes.append(f"{arrival} is on another clock than the tokens: sent when {queued}")
            return self.times("queued")
        return sent_s

    def ttft_s(self, sent_s: Floats) -> Floats:
        """Return the times to first token."""
        if self.has("ttft"):
            return self.numbers("ttft")
        return self._since(sent_s, "first_token")

    def e2e_s(self, sent_s: Floats) -> Floats:
        """Return the end-to-end latencies."""
        if self.has("e2e"):
            return self.numbers("e2e")
        if self.has("ttft", "generation"):
            return self.numbers("ttft") + self.numbers("generation")
        if self.has("ttft", "tpot"):
            further = np.array([as_number(value) or np.nan for value in self._values("output")]) - 1
            return self.numbers("ttft") + np.where(further > 0, self.numbers("tpot") * further, 0.0)
        return self._since(sent_s, "last_token")

    def _since(self, sent_s: Floats, name: str) -> Floats:
        """Return the time from sending to a moment; NaN without it. One before the sending is a mistake."""
        if not self.has(name):
            return np.full(len(self._rows), np.nan)
        passed: Floats = self.numbers(name) - sent_s
        place = self._place(name)
        for index in np.flatnonzero(passed < 0):
            self._findings.add(place(int(index)), self._values(name)[index], "is before the sending")
        return passed

    def _is_another_clock(self, sent_s: Floats) -> bool:
        apart = np.abs(self.numbers("first_token") - sent_s)
        known = apart[~np.isnan(apart)]
        return bool(len(known) and np.median(known) > _ANOTHER_CLOCK_S)

    def _values(self, name: str) -> list[Any]:
        return [row.cells.get(self._columns[name].name) for row in self._rows]

    def _place(self, name: str) -> Any:
        return lambda index: f"line {self._rows[index].line}, {self._columns[name].name}"


def _succeeded(row: Row, columns: Mapping[str, Column]) -> bool:
    """Tell whether a request succeeded; without a column that says so, whether it has output tokens."""
    said = {name: row.cells.get(column.name) for name, column in columns.items()}
    if "error" in said and str(said["error"] or "").strip().lower() not in (
        "",
        "none",
        "null",
        "false",
        "nan",
    ):
        return False
    if any(
        name in said and str(said[name]).strip().lower() not in _SUCCESS for name in ("success", "status")
    ):
        return False
    return as_number(said["output"]) != 0


def _on_the_columns(columns: Mapping[str, Column]) -> Iterator[str]:
    """Yield which times were taken to be in seconds, as their names do not say."""
    times = ("arrival", "ttft", "e2e", "tpot", "generation", "queued", "first_token", "last_token")
    bare = [columns[name].name for name in times if name in columns and columns[name].unit_s is None]
    if bare:
        yield f"{listed(bare, 'and')} taken as seconds, as their names end with no unit"


def _on_what_is_missing(ttft_s: Floats, e2e_s: Floats) -> Iterator[str]:
    for name, values in (("TTFT", ttft_s), ("E2E", e2e_s)):
        if missing := int(np.isnan(values).sum()):
            yield f"{missing:,} of {len(values):,} requests have no {name}"
