"""Traces as JSON: an object for each request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from servesim.words import listed
from servesim.workload.formats.chunk import gathered, recording
from servesim.workload.formats.dialogue import KEYS, TIME, Turns
from servesim.workload.formats.faults import Faults, no_request, refuse
from servesim.workload.formats.field import BLOCKS_RULE, Field, ids, moment, tokens
from servesim.workload.formats.json_chunk import Placed, chunks, of_source
from servesim.workload.formats.options import Options
from servesim.workload.formats.recording import Recording
from servesim.workload.formats.source import Source


@dataclass(frozen=True)
class JsonTable:
    """A layout of JSON objects: by what names each of their keys may go, the usual one first.

    ``time`` has the nanoseconds of a unit of each. ``blocks`` have ``block_tokens`` tokens, or as many as the
    key of that name says. ``refused`` are keys that no object may have, with what they mean. ``turns``: the
    objects may be turns of sessions (:mod:`servesim.workload.formats.dialogue`).
    """

    name: str
    input: tuple[str, ...]
    output: tuple[str, ...]
    time: tuple[tuple[str, float], ...]
    needs_time: bool = True
    blocks: str | None = None
    block_tokens: int | str = 1
    refused: tuple[tuple[str, str], ...] = ()
    turns: bool = False

    @property
    def layout(self) -> str:
        """Return how such a file looks, for those who have another."""
        time = listed(name for name, _ in self.time)
        time = time if self.needs_time else f"perhaps {time}"
        blocks = f", perhaps {self.blocks}" if self.blocks else ""
        return f"JSON lines with the keys {time}, {listed(self.input)}, {listed(self.output)}{blocks}"

    def claims(self, names: Sequence[str]) -> bool:
        """Tell whether an object has the keys of this layout."""
        times = [name for name, _ in self.time]
        needed = [self.input, self.output, *([times] if self.needs_time else [])]
        refused = [name for name, _ in self.refused]
        return all(set(known) & set(names) for known in needed) or bool(set(refused) & set(names))

    def read(self, source: Source, options: Options) -> Recording:
        """Read a file with an object in each line, or with one list of them; no option concerns it.

        Raises ConfigError with every bad value and its line (the first 20 of them, then their number).
        """
        return self.gather(of_source(source), source.name)

    def gather(
        self,
        placed: Iterable[Placed],
        path: str,
        left_out: tuple[tuple[str, int], ...] = (),
        unread: tuple[str, ...] = (),
    ) -> Recording:
        """Return the recording of objects, however they lay in the file ``path``.

        The first of them says which keys the others must have, too. What was left out before and what else is
        in the file goes into the recording.
        """
        faults, seen = Faults(path), dict[str, None]()
        turns = Turns(faults) if self.turns else None
        left = _noting(turns.through(iter(placed)) if turns else placed, seen)
        first = next(left, None)
        if first is None:
            no_request(path, left_out)
        names = list(first[1]) if isinstance(first[1], dict) else []
        fields = list(self._fields(names))
        numbers = gathered(chunks(chain([first], left), dict(self.refused)), fields, faults)
        used = {*(each.name for each in fields), *(KEYS if self.turns else ())}
        if self.turns and TIME in seen and TIME not in used:
            refuse(path, f"must have {TIME} in the first request, too: others have it")
        unread += tuple(name for name in seen if name not in used)
        size = self.block_tokens if isinstance(self.block_tokens, int) else None
        found = recording(
            numbers, self.name, path, fields, block_tokens=size, left_out=left_out, unread=unread
        )
        return found._replace(
            read=(*found.read, *(name for name in KEYS if turns and name in seen)),
            dialogue=turns.dialogue() if turns else None,
        )

    def _fields(self, names: Sequence[str]) -> Iterator[Field]:
        """Yield the fields that the first object has, or must have."""
        times = [moment(*known) for known in self.time]
        there = [each for each in times if each.name in names]
        if there or self.needs_time:
            yield (there or times)[0]
        yield tokens("input_tokens", _one_of(self.input, names), 1)
        yield tokens("output_tokens", _one_of(self.output, names), 0)
        if self.blocks is not None and self.blocks in names:
            size = self.block_tokens
            unit = "" if isinstance(size, str) else f"{size:,} tokens each"
            yield Field("blocks", self.blocks, ids, BLOCKS_RULE, unit)
            if isinstance(size, str):
                yield tokens("block_tokens", size, 1)


def _noting(placed: Iterable[Placed], seen: dict[str, None]) -> Iterator[Placed]:
    """Yield objects, and note the keys that any of them has."""
    for place, value in placed:
        if isinstance(value, dict) and not value.keys() <= seen.keys():
            seen.update(dict.fromkeys(value))
        yield place, value


def _one_of(known: Sequence[str], names: Sequence[str]) -> str:
    """Return the first of the names that a key may have which is there, or else the usual one."""
    return next((name for name in known if name in names), known[0])
