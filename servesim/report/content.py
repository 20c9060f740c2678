"""What a page shows: sections of charts, tables and markup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go


@dataclass(frozen=True)
class Chart:
    """A figure with what it is called, and a caption that defines what it shows.

    ``wide`` ones take the whole width of the page, the others half of it.
    """

    title: str
    figure: go.Figure
    caption: str = ""
    wide: bool = False


@dataclass(frozen=True)
class Choice:
    """A card with several charts of which one is seen, and a button for each, named by its title."""

    title: str
    charts: Sequence[Chart]
    wide: bool = False


@dataclass(frozen=True)
class Markup:
    """HTML that is put into the page as it is: whoever makes it escapes what it quotes."""

    html: str


@dataclass(frozen=True)
class Table:
    """Rows of cells under headings, if any; the first ``words`` columns are words, the others figures.

    A ``folded`` one shows its title until it is asked for.
    """

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str | Markup]]
    caption: str = ""
    words: int = 1
    folded: bool = False


Part = Chart | Choice | Table | Markup


@dataclass(frozen=True)
class Section:
    """A heading, some sentences, and what stands below them."""

    title: str
    parts: Sequence[Part]
    lead: str = ""
