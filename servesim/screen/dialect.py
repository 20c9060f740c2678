"""The metrics of a benchmarking tool on the screen, with what each of them means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from servesim.results.dialects.known import DIALECTS
from servesim.screen.figures import number
from servesim.screen.snug import Snug


def dialect(section: Mapping[str, Any]) -> RenderableType:
    """Show the section ``metrics`` of a summary: samples and single figures."""
    shown, definitions = DIALECTS[section["dialect"]].shown, section["definitions"]
    samples, single = [], []
    for name, value in section["values"].items():
        label = f"{name} ({definitions[name]['unit']})"
        if isinstance(value, Mapping) and value.keys() != {"mean"}:
            samples.append([label, *(number(value.get(statistic)) for statistic in shown)])
        else:
            single.append([label, number(value["mean"] if isinstance(value, Mapping) else value)])
    return Group(Snug(["", *shown], samples), Text(), Snug(["", ""], single))


def dialect_definitions(section: Mapping[str, Any]) -> str:
    """Return what each metric of a section ``metrics`` means, as running text."""
    return "; ".join(f"{name}: {said['meaning']}" for name, said in section["definitions"].items())


def dialect_title(section: Mapping[str, Any]) -> str:
    """Return what the tool of a section ``metrics`` is called."""
    return DIALECTS[section["dialect"]].title
