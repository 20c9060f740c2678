"""The memory sheet by itself, and beside what an engine's log says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from servesim.cluster.deployment import PoolMemory
from servesim.cost.memory import GIB
from servesim.screen.console import print_lines
from servesim.screen.figures import counted


class Pair(NamedTuple):
    """A figure as it is simulated and as it was logged; None where there is none."""

    label: str
    simulated: float | None
    logged: float | None
    decimals: int = 2


def print_memory(title: str, pools: Sequence[PoolMemory], notes: Sequence[str], out: Console) -> None:
    """Print the sheet of each pool, with what an engine makes of it."""
    parts: list[Text | Table] = [Text(title, style="bold")]
    for pool in pools:
        parts += [Text(), _sheet(pool), Text("\n".join(_in_words(pool)))]
    if notes:
        parts += [Text(), Text("\n".join(notes))]
    print_lines(out, *parts)


def _sheet(pool: PoolMemory) -> Table:
    role = "" if pool.role == "serve" else f"{pool.role}: "
    where = f"{role}each of {pool.tensor_parallel_size} x {pool.gpu_name}"
    table = _table(where, "GiB", "bytes")
    for label, size in pool.sheet.lines():
        table.add_row(label, f"{size / GIB:,.2f}", f"{size:,}")
    return table


def _in_words(pool: PoolMemory) -> Iterator[str]:
    """Yield how many tokens and requests the KV cache holds, or what would hold the model."""
    sheet = pool.sheet
    if not sheet.fits:
        short = (sheet.block_size * sheet.kv_bytes_per_token - sheet.kv_bytes) / GIB
        more = "no number of GPUs of a node holds it"
        if pool.smallest_fit is not None:
            more = f"tensor_parallel_size={pool.smallest_fit} holds it"
        yield f"DOES NOT FIT: {short:,.2f} GiB short of one KV block on each GPU; {more}"
        return
    given = ", as given" if sheet.overridden else ""
    blocks = f"{counted(sheet.blocks, 'block')} of {counted(sheet.block_size, 'token')}{given}"
    yield f"KV cache of a replica: {sheet.kv_tokens:,} tokens ({blocks})"
    yield f"KV of a token: {sheet.kv_bytes_per_token:,} bytes on each GPU"
    if pool.max_model_len:
        many = f"{sheet.concurrency(pool.max_model_len):.2f}x"
        yield f"Maximum concurrency for {pool.max_model_len:,} tokens per request: {many}"


def print_pairs(source: str, role: str, pairs: Sequence[Pair], notes: Sequence[str], out: Console) -> None:
    """Print what is simulated beside what was logged, and the differences."""
    table = _table(
        source if role == "serve" else f"{source}, {role}", "simulated", "logged", "difference", ""
    )
    for pair in pairs:
        table.add_row(pair.label, *_cells(pair))
    print_lines(out, Text(), table, *map(Text, notes))


def _cells(pair: Pair) -> Iterator[str]:
    for value in (pair.simulated, pair.logged):
        yield "-" if value is None else f"{value:,.{pair.decimals}f}"
    if pair.simulated is None or pair.logged is None:
        yield from ("-", "")
        return
    difference = pair.simulated - pair.logged
    yield f"{difference:+,.{pair.decimals}f}"
    yield f"{difference / abs(pair.logged):+.1%}" if pair.logged else ""


def _table(first: str, *headings: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", show_edge=False)
    table.add_column(first, no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table
