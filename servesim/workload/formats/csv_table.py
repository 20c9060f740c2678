"""Traces as CSV: a header that names the columns, and a row for each request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from servesim.words import listed
from servesim.workload.formats import cells
from servesim.workload.formats.chunk import gathered, recording
from servesim.workload.formats.csv_chunk import CsvChunk, csv_chunks
from servesim.workload.formats.faults import Faults, refuse
from servesim.workload.formats.field import BLOCKS_RULE, TOKENS_RULE, Field
from servesim.workload.formats.options import Options
from servesim.workload.formats.recording import Recording
from servesim.workload.formats.source import Source

_SECONDS_RULE = f"must be seconds from 0 to {cells.LATEST_S:,.0f}"
_CLOCK_RULE = f"{_SECONDS_RULE}, or in every row like 2023-11-16 18:15:46.6805900"


@dataclass(frozen=True)
class Left:
    """Rows that are no requests: those with one of these words in a column, and why."""

    column: str
    words: frozenset[str]
    why: str


@dataclass(frozen=True)
class CsvTable:
    """A layout of CSV: by what names each of its columns may go, the usual one first.

    Times are seconds, or timestamps where it has a ``clock``. A column of ``ones`` must hold 1, ``blocks``
    are ids with blanks between them, and ``block_tokens`` is the same number in every row.
    """

    name: str
    input: tuple[str, ...]
    output: tuple[str, ...]
    time: tuple[str, ...]
    needs_time: bool = True
    clock: bool = False
    left: Left | None = None
    ones: str | None = None
    blocks: str | None = None
    block_tokens: str | None = None

    @property
    def layout(self) -> str:
        """Return how such a file looks, for those who have another."""
        time = listed(self.time) if self.needs_time else f"perhaps {listed(self.time)}"
        return f"CSV with the columns {time}, {listed(self.input)}, {listed(self.output)}"

    def claims(self, names: Sequence[str]) -> bool:
        """Tell whether a header has the columns of this layout."""
        return not self._absent(names)

    def read(self, source: Source, options: Options) -> Recording:
        """Read a file of this layout; no option concerns it.

        Raises ConfigError with every bad value and its line (the first 20 of them, then their number).
        """
        names, chunks = csv_chunks(source.lines())
        self._check_header(names, source.name)
        first = next(chunks, None)
        if first is None:
            refuse(source.name, "is an empty trace: no rows below its header")
        fields = list(self._fields(names, first))
        left: Counter[str] = Counter()
        numbers = gathered(self._kept(chain([first], chunks), left), fields, Faults(source.name))
        used = {field.name for field in fields} | {self.left.column if self.left else ""}
        unread = tuple(name for name in names if name not in used)
        return recording(numbers, self.name, source.name, fields, left_out=tuple(left.items()), unread=unread)

    def _absent(self, names: Sequence[str]) -> list[str]:
        """Return the columns that are not there once."""
        needed = [*([self.time] if self.needs_time else []), self.input, self.output]
        needed += [(name,) for name in (self.ones, self.left and self.left.column) if name]
        return [listed(known) for known in dict.fromkeys(needed) if _one_of(known, names) is None]

    def _check_header(self, names: Sequence[str], path: str) -> None:
        if not names:
            refuse(path, "is an empty file")
        absent = self._absent(names)
        if self.blocks in names and self.block_tokens not in names:
            absent.append(f"{self.block_tokens} (of {self.blocks})")
        if absent:
            needed = [listed(known) for known in (self.time, self.input, self.output)]
            needed = needed if self.needs_time else needed[1:]
            are = "is" if len(absent) == 1 else "are"
            refuse(
                path,
                f"must name the columns {listed(needed, 'and')} in its first line, once each; "
                f"{listed(absent, 'and')} {are} not there once",
            )

    def _fields(self, names: Sequence[str], first: CsvChunk) -> Iterator[Field]:
        """Yield the fields that are there; the first rows decide whether times are timestamps or seconds."""
        time, tokens = _one_of(self.time, names), cells.tokens
        if time is not None:
            clock = self.clock and first.any_with(time, ":")
            rule = _CLOCK_RULE if self.clock else _SECONDS_RULE
            read, unit = (cells.timestamps, "") if clock else (cells.seconds, "s")
            yield Field("time_ns", time, read, rule, unit)
        for role, known, least in (("input_tokens", self.input, 1), ("output_tokens", self.output, 0)):
            name = _one_of(known, names) or known[0]
            yield Field(role, name, partial(tokens, at_least=least), TOKENS_RULE.format(least))
        if self.ones:
            yield Field("ones", self.ones, partial(tokens, at_least=1, at_most=1), "must be 1")
        if self.blocks in names and self.blocks and self.block_tokens:
            yield Field("blocks", self.blocks, cells.ids, BLOCKS_RULE + ", with blanks between them")
            one = partial(tokens, at_least=1)
            yield Field("block_tokens", self.block_tokens, one, TOKENS_RULE.format(1))

    def _kept(self, chunks: Iterable[CsvChunk], left: Counter[str]) -> Iterator[CsvChunk]:
        """Yield the chunks without the rows that are left out, and count those."""
        for chunk in chunks:
            if self.left and (count := chunk.leave_out(self.left.column, self.left.words)):
                left[self.left.why] += count
            if chunk:
                yield chunk


def _one_of(known: Sequence[str], names: Sequence[str]) -> str | None:
    """Return the first of the names that a column may have which is there once."""
    return next((name for name in known if names.count(name) == 1), None)
