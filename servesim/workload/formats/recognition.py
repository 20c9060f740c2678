"""Which format a file has, by what is in it; its name does not matter."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

from servesim.workload.formats.azure import AZURE
from servesim.workload.formats.burstgpt import BURSTGPT
from servesim.workload.formats.dialogue import KEYS
from servesim.workload.formats.faults import refuse
from servesim.workload.formats.json_chunk import NoJson, first_records
from servesim.workload.formats.llmservingsim import LLMSERVINGSIM
from servesim.workload.formats.mooncake import BLOCK_TOKENS, MOONCAKE
from servesim.workload.formats.native import NATIVE
from servesim.workload.formats.options import Options, TimedTrace
from servesim.workload.formats.recording import Recording
from servesim.workload.formats.sharegpt import SHAREGPT
from servesim.workload.formats.source import Source
from servesim.workload.formats.splitwise import SPLITWISE
from servesim.workload.formats.vidur import VIDUR
from servesim.workload.formats.vllm_bench import VLLM_BENCH
from servesim.workload.formats.vllm_timed import BLOCK_TOKENS as VLLM_BLOCK_TOKENS
from servesim.workload.formats.vllm_timed import VLLM_TIMED

#: Rows that are looked at where two formats have the same keys.
_LOOKED_AT = 100


class Format(Protocol):
    """A format that can be read."""

    @property
    def name(self) -> str:
        """Its name as ``workload.format`` has it."""

    @property
    def layout(self) -> str:
        """How such a file looks."""

    def read(self, source: Source, options: Options) -> Recording:
        """Read a file; ConfigError with all that is wrong with it."""


FORMATS: dict[str, Format] = {
    each.name: each
    for each in (
        AZURE,
        MOONCAKE,
        VLLM_TIMED,
        BURSTGPT,
        SHAREGPT,
        VIDUR,
        SPLITWISE,
        LLMSERVINGSIM,
        VLLM_BENCH,
        NATIVE,
    )
}
_OF_CSV = (AZURE, BURSTGPT, SPLITWISE, VIDUR, NATIVE)
_OF_JSON = (LLMSERVINGSIM, MOONCAKE, VLLM_BENCH, NATIVE)
_OF_LISTS = (SHAREGPT, *_OF_JSON)


class Recognised(NamedTuple):
    """The format of a file, and what speaks against it: nothing, or a sentence."""

    format: Format
    doubt: str = ""


def recognised(source: Source, options: Options) -> Recognised:
    """Return the format of a file.

    Raises ConfigError with all formats where it has none of them.
    """
    if source.is_parquet:
        return Recognised(NATIVE)
    letter = source.first_letter()
    if not letter:
        refuse(source.name, "is an empty file")
    if letter not in ("{", "["):
        header = next(csv.reader(source.first_lines(1), skipinitialspace=True), [])
        return Recognised(_of(_OF_CSV, [name.strip() for name in header], source))
    record = next(iter(first_records(source, 1)), None)
    if isinstance(record, NoJson):
        record = record.begins
    if letter == "[" and not (isinstance(record, dict) and record):
        return Recognised(SHAREGPT)  # says what is wrong with the list
    return _of_json(record, _OF_LISTS if letter == "[" else _OF_JSON, source, options)


def _of_json(record: Any, formats: Iterable[Any], source: Source, options: Options) -> Recognised:
    """Return the format of a file whose first object is ``record``."""
    if not isinstance(record, dict):  # an object over several lines
        return Recognised(VLLM_BENCH)
    if options.timed_trace != TimedTrace() and not SHAREGPT.claims(list(record)):
        return Recognised(VLLM_TIMED)
    found = _of(formats, list(record), source)
    return _of_timestamps(source) if found is MOONCAKE else Recognised(found)


def _of(formats: Iterable[Any], names: list[str], source: Source) -> Format:
    """Return the first of these formats whose columns are there."""
    found: Format | None = next((each for each in formats if each.claims(names)), None)
    if found is None:
        known = "".join(f"\n    {each.name}: {each.layout}" for each in FORMATS.values())
        refuse(source.name, f"has none of the known layouts:{known}")
    return found


def _of_timestamps(source: Source) -> Recognised:
    """Return Mooncake's format or vLLM's, which have the same keys, by the size of blocks or the times.

    Turns of sessions are Mooncake's. Else blocks that fit the prompts say it. Where there are none, or where
    both fit, times with a decimal point are taken for seconds, others for milliseconds; then a doubt is left.
    """
    records = [row for row in first_records(source, _LOOKED_AT) if isinstance(row, dict)]
    if any(key in row for row in records for key in KEYS):
        return Recognised(MOONCAKE)
    fits = {size: all(_fits(row, size) for row in records) for size in (BLOCK_TOKENS, VLLM_BLOCK_TOKENS)}
    if fits[BLOCK_TOKENS] != fits[VLLM_BLOCK_TOKENS]:
        return Recognised(MOONCAKE if fits[BLOCK_TOKENS] else VLLM_TIMED)
    points = any(isinstance(row.get("timestamp"), float) for row in records)
    found, unit, other = (VLLM_TIMED, "seconds", MOONCAKE) if points else (MOONCAKE, "ms", VLLM_TIMED)
    why = "their decimal points" if points else "their being whole numbers"
    doubt = f"times taken for {unit} by {why} alone; should they not be, name the format {other.name}"
    return Recognised(found, doubt)


def _fits(record: dict[str, Any], size: int) -> bool:
    """Tell whether a prompt may consist of blocks of a size, as many as it has."""
    length, ids = record.get("input_length"), record.get("hash_ids")
    if not isinstance(length, int) or not isinstance(ids, list):
        return True
    return len(ids) == -(-length // size)
