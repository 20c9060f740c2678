"""One step as a table: each operation with its work, its time and what bounds it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from servesim.cluster.deployment import Deployment
from servesim.cost.steady import Steady
from servesim.cost.step_time import Operation
from servesim.scenario import Scenario
from servesim.screen.console import print_lines
from servesim.screen.figures import number, rounded_percent

#: From this many columns on, the columns of the table stand two blanks apart.
WIDE = 90


class Step(NamedTuple):
    """Decodes with their total context, and prefill chunks of (new, cached) tokens."""

    sequences: int
    context: int
    chunks: Sequence[tuple[int, int]]

    @property
    def rows(self) -> int:
        """Sequences in the step: those that decode, and those of the chunks."""
        return self.sequences + len(self.chunks)

    @property
    def tokens(self) -> int:
        """Tokens that the step computes."""
        return self.sequences + sum(new for new, _ in self.chunks)

    def __str__(self) -> str:
        parts = []
        if self.sequences:
            mean = self.context / self.sequences
            parts.append(f"{self.sequences:,} decodes at {mean:,.0f} tokens of KV")
        parts += [f"{new:,} tokens of a prompt behind {cached:,} cached" for new, cached in self.chunks]
        return ", ".join(parts)


def print_step(scenario: Scenario, pool: Deployment, step: Step, out: Console) -> None:
    """Print the table of a step of one replica of a pool."""
    gpus = pool.tensor_parallel_size
    model = f"{scenario.model.name} ({scenario.model.weights_dtype})"
    role = "" if pool.role == "serve" else f", {pool.role}"
    out.print(Text(f"{model} on {gpus} x {pool.gpu.name}{role}: {step}", style="bold"))
    operations = pool.step_time.breakdown(step.sequences, step.context, step.chunks)
    total_s = sum(one.seconds for one in operations)
    gap = 2 if out.width >= WIDE else 1
    table = Table(box=None, padding=(0, gap, 0, 0), header_style="bold")
    for heading in ("", "operation"):
        table.add_column(heading, no_wrap=True, vertical="bottom")
    for heading in ("TFLOP", "GB", "ms", "share", "of\npeak", "of\nbandwidth"):
        table.add_column(heading, justify="right", no_wrap=True, vertical="bottom")
    table.add_column("bound by", no_wrap=True, vertical="bottom")
    for letter, one in zip(letters(operations), operations, strict=True):
        table.add_row(
            letter, one.name, *_figures(one, pool, scenario.model.weights_dtype, total_s), one.bound
        )
    flops, moved = (
        sum(values) for values in zip(*((one.flops, one.bytes) for one in operations), strict=True)
    )
    table.add_row("", "step", number(flops, 1e-12), number(moved, 1e-9), f"{total_s * 1e3:.3f}", "100.0%")
    out.print(table)


def letters(operations: Sequence[Operation]) -> list[str]:
    """Return the letter that stands for each operation in a drawing."""
    return [chr(ord("a") + index) for index in range(len(operations))]


def _figures(one: Operation, pool: Deployment, weights_dtype: str, total_s: float) -> list[str]:
    """Return the figures of one row; shares of peak and bandwidth are of all GPUs of the replica."""
    gpu, gpus = pool.gpu, pool.tensor_parallel_size
    dense = one.name in ("qkv", "o", "gate_up", "down")
    peak = gpu.peak_flops(weights_dtype if dense else "bf16")
    rate = gpu.nvlink_bytes_per_s if one.name.endswith("all_reduce") else gpu.hbm_bytes_per_s
    compute, moved = one.flops / peak / gpus / one.seconds, one.bytes / rate / gpus / one.seconds
    return [
        number(one.flops, 1e-12) if one.flops else "",
        number(one.bytes, 1e-9) if one.bytes else "",
        f"{one.seconds * 1e3:.3f}",
        f"{one.seconds / total_s:.1%}",
        rounded_percent(compute) if one.flops else "",
        rounded_percent(moved) if one.bytes else "",
    ]


def print_notes(notes: Iterable[str], out: Console) -> None:
    """Print the notes of a step, each on lines of its own."""
    grid = Table.grid(padding=(0, 1))
    for note in notes:
        grid.add_row("-", note)
    print_lines(out, Text("Notes", style="bold"), grid)


def print_steady(closed: Steady, wrong: Sequence[str], simulated_s: float | str, out: Console) -> None:
    """Print the steady state of a closed loop in closed form, beside the simulated one.

    Where something is ``wrong`` with the closed form, only that is printed beside the simulated one; where
    nothing could be simulated, ``simulated_s`` says why.
    """
    out.print(Text("Steady state of a closed loop on one replica", style="bold"))
    if isinstance(simulated_s, str):
        simulated, off = f"- simulated: {simulated_s}", ""
    else:
        simulated = f"{_ms(simulated_s)} simulated"
        off = f" ({closed.tpot_s / simulated_s - 1:+.1%})"
    lines = [
        f"{closed.decodes:.1f} decodes a step, {closed.context:,.0f} tokens of KV: {_ms(closed.decode_s)}",
        f"{closed.prefills_per_step:.4f} prompts of others a step, each {_ms(closed.prefill_s)}",
        f"TPOT {_ms(closed.tpot_s)} in closed form, {simulated}{off}",
    ]
    if wrong:
        lines = [
            *(f"the closed form does not hold: {reason}" for reason in wrong),
            f"TPOT {simulated}",
        ]
    out.print("\n".join(f"  {line}" for line in lines), highlight=False)


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"
