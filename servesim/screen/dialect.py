"""The metrics of a benchmarking tool on the screen, with what each of them means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from servesim.results.dialects.known import DIALECTS
from servesim.screen.figures import number


def dialect(section: Mapping[str, Any]) -> RenderableType:
    """Show the section ``metrics`` of a summary: samples and single figures."""
    shown, definitions = DIALECTS[section["dialect"]].shown, section["definitions"]
    samples, single = _table("", *shown), _table("", "")
    for name, value in section["values"].items():
        label = f"{name} ({definitions[name]['unit']})"
        if isinstance(value, Mapping) and value.keys() != {"mean"}:
            samples.add_row(label, *(number(value.get(statistic)) for statistic in shown))
        else:
            single.add_row(label, number(value["mean"] if isinstance(value, Mapping) else value))
    return Group(samples, Text(), single)


def dialect_definitions(section: Mapping[str, Any]) -> str:
    """Return what each metric of a section ``metrics`` means, as running text."""
    return "; ".join(f"{name}: {said['meaning']}" for name, said in section["definitions"].items())


def dialect_title(section: Mapping[str, Any]) -> str:
    """Return what the tool of a section ``metrics`` is called."""
    return DIALECTS[section["dialect"]].title


def _table(*headings: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="", show_edge=False, show_header=any(headings))
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="right" if index else "left", no_wrap=index > 0)
    return table
