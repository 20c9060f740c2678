"""How figures are written on the screen, and the console that they are written on."""

from __future__ import annotations

from typing import Any

from rich.console import Console

PLAIN_WIDTH = 100  # columns of the output where it is not a terminal


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to the command what to do when nobody reads any more; rich would exit with 1."""
        raise BrokenPipeError


def console(stderr: bool = False) -> Console:
    """Return a console without colours and of a fixed width where nobody is watching."""
    terminal = _Console(stderr=stderr, highlight=False)
    return terminal if terminal.is_terminal else _Console(stderr=stderr, highlight=False, width=PLAIN_WIDTH)


def number(value: float | None, scale: float = 1.0) -> str:
    """Return three significant digits, or whole numbers with their thousands marked."""
    if value is None:
        return "-"
    value *= scale
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"


def percent(share: float | None) -> str:
    """Return a share of 1 in per cent."""
    return "-" if share is None else f"{share:.1%}"


def dollars(usd: float | None) -> str:
    """Return dollars and cents; of less than a dollar, two significant digits."""
    if usd is None:
        return "-"
    return f"${usd:,.2f}" if usd >= 1 else f"${usd:.2g}"


def typed(value: Any) -> str:
    """Return a value as it would be typed on the command line; of a table, how long it is."""
    if isinstance(value, list):
        return f"{len(value)} rows"
    if isinstance(value, bool):
        return str(value).lower()
    return "null" if value is None else str(value)
