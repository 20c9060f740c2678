"""Readers of measured runs, one module per format; what a file holds tells which, not what it is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from servesim.check import ConfigError, Problem
from servesim.validate.measured import Measured
from servesim.validate.readers import aiperf, aiperf_summary, guidellm, rows, vllm
from servesim.validate.readers.content import Content, read_content
from servesim.validate.readers.problems import refuse
from servesim.validate.readers.selection import chosen, groups
from servesim.validate.users import as_they_began

_KNOWN = (
    "is of no format that is known: JSON of vllm bench serve, AIPerf or GuideLLM, AIPerf records, or a table "
    "(CSV or JSON lines) with columns such as arrival_s, input_tokens, output_tokens, ttft_s and e2e_s"
)


def read(path: str | Path) -> Measured:
    """Return the measured run that a file holds.

    Raises:
        ConfigError: it cannot be read, listing what is wrong; or it holds several runs.
    """
    runs = read_runs(Path(path))
    if len(runs) != 1:
        refuse(Path(path).name, f"holds {len(runs)} runs; read_runs returns them all")
    return runs[0]


def read_runs(path: Path, where: Mapping[str, str] | None = None, by: Sequence[str] = ()) -> list[Measured]:
    """Return the measured runs that a file holds.

    Args:
        path: the file.
        where: values of columns that rows of a table must have to be taken.
        by: columns of a table whose values tell its runs apart.

    Raises:
        ConfigError: listing what is wrong.
    """
    return runs_of(read_content(path), where or {}, by)


def runs_of(content: Content, where: Mapping[str, str], by: Sequence[str]) -> list[Measured]:
    """Return the measured runs of what a file holds; see :func:`read_runs`.

    Raises:
        ConfigError: listing what is wrong.
    """
    return [as_they_began(run) for run in _runs(content, where, by)]


def _runs(content: Content, where: Mapping[str, str], by: Sequence[str]) -> list[Measured]:
    if rows.is_table(content.header):
        taken = chosen(content, where)
        return [
            replace(rows.read_table(content, each, _called(content, labels)), labels=labels)
            for labels, each in groups(content, taken, by)
        ]
    if where or by:
        message = "selects rows of a table; this file is none"
        raise ConfigError([Problem(content.source, None, f"{'--where' if where else '--by'} {message}")])
    return _reports(content)


def _called(content: Content, labels: Mapping[str, str]) -> str:
    return " ".join([content.source, *(f"{name}={value}" for name, value in labels.items())])


def _reports(content: Content) -> list[Measured]:
    value, source = content.value, content.source
    if guidellm.is_report(value):
        return guidellm.read_report(value, source)
    if aiperf_summary.is_summary(value):
        return [aiperf_summary.read_summary(value, source)]
    if vllm.is_result(value):
        return [vllm.read_result(value, source)]
    if aiperf.is_records(content):
        return [aiperf.read_records(content)]
    if aiperf_summary.is_report(content):
        return [aiperf_summary.read_report(content)]
    if content.rows and all(vllm.is_result(row.cells) for row in content.rows):
        return [vllm.read_result(row.cells, f"{source}:{row.line}") for row in content.rows]
    raise ConfigError([Problem(str(content.path), None, _KNOWN)])
