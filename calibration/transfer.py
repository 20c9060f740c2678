"""The terms of ``conf/transfer_overhead``, fitted on measured KV transfers between nodes.

``python -m calibration transfer --data DIR``: short prompts are fitted, longer ones held out. What is fitted
is what the simulator evaluates: a :class:`Transfer` over the NICs of a replica.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import least_squares

from calibration.conf import CONF, gpu_named
from calibration.fit.errors import Errors
from calibration.fit.job import Array
from calibration.sources.runs import read_runs
from calibration.sources.tidy import SourceError
from calibration.terms import number, provenance
from servesim.cluster.transfer import Transfer, TransferOverhead

#: The transfers below the folder of measured data.
TRANSFERS = Path("transfer", "mooncake_h800_qwen3_8b_kv_transfer.csv")

#: Qwen3-8B in BF16: 36 layers x keys and values x 8 KV heads x 128 elements x 2 bytes. The file's sizes are
#: rounded, and its MB and GB are MiB and GiB.
BYTES_PER_TOKEN = 147_456

#: Eight RoCE ports, whose line rate the file's column of utilisation has as 200 GB/s together. The H800 is an
#: H100 with fewer NVLinks; the network's latency is taken to be the same.
PORTS = 8
GPU = replace(gpu_named("h100-sxm"), name="h800-sxm", nic_bytes_per_s=25e9)

#: Prompts of more tokens are held out.
LONGEST_FITTED = 4096

_FILE = """\
# What a KV transfer between nodes loses against its NICs (servesim/cluster/transfer.py).
# Written by `python -m calibration transfer`: fitted on measured transfers.
name: {name}

# Share of the line rate at which the bytes move.
nic_efficiency: {efficiency}

# Time before the first byte beside the network's latency, s.
nic_setup_s: {setup}

# What was fitted and what held out; errors of the time of a transfer in percent.
{provenance}"""


def fit_transfer(data: Path, out: Path = CONF / "transfer_overhead") -> list[Path]:
    """Fit the terms, write their file, and return it."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / "mooncake.yaml"
    path.write_text(Fit.of(transfers(data)).text(path.stem))
    return [path]


def transfer_table(data: Path) -> Iterator[str]:
    """Yield a row per transfer: measured, predicted, and at line rate."""
    fit = Fit.of(transfers(data))
    yield "| prompt | part | measured, ms | predicted, ms | error, % | at line rate, % |"
    yield "|---|---|---|---|---|---|"
    times = zip(fit.points.itertuples(), fit.seconds(), fit.seconds(line_rate=True), strict=True)
    for point, seconds, at_line_rate in times:
        part = "fitted" if point.prompt_tokens <= LONGEST_FITTED else "held out"
        errors = (f"{100 * (each / point.seconds - 1):+.1f}" for each in (seconds, at_line_rate))
        cells = (f"{point.prompt_tokens:,}", part, f"{1e3 * point.seconds:.2f}", f"{1e3 * seconds:.2f}")
        yield f"| {' | '.join((*cells, *errors))} |"


def transfers(data: Path) -> pd.DataFrame:
    """Return one row per transfer: ``prompt_tokens``, ``bytes`` and ``seconds``.

    Raises:
        SourceError: where the file or a column is missing, or too few are there to fit and to hold out.
    """
    table = read_runs(data, TRANSFERS, ["prompt_tokens", "transfer_ms"])
    fitted = int((table.prompt_tokens <= LONGEST_FITTED).sum())
    if fitted < 2 or fitted == len(table):
        raise SourceError(f"{data / TRANSFERS}: needs prompts on both sides of {LONGEST_FITTED} tokens")
    return table[["prompt_tokens"]].assign(
        bytes=table.prompt_tokens * BYTES_PER_TOKEN, seconds=table.transfer_ms / 1e3
    )


@dataclass(frozen=True)
class Fit:
    """Fitted terms; transfers of more than ``LONGEST_FITTED`` tokens have no part in them."""

    points: pd.DataFrame
    overhead: TransferOverhead

    @classmethod
    def of(cls, points: pd.DataFrame) -> Fit:
        """Fit the terms to the shorter transfers: least squares on log error."""
        fitted = points[points.prompt_tokens <= LONGEST_FITTED]
        measured_s = fitted.seconds.to_numpy()

        def overhead(terms: Array) -> TransferOverhead:
            efficiency, setup_ms = map(float, terms)
            return TransferOverhead("fitted", efficiency, setup_ms / 1e3)

        def residuals(terms: Array) -> Array:
            return np.log(_seconds(fitted, overhead(terms)) / measured_s)

        found = least_squares(residuals, (0.5, 0.1), bounds=((0.01, 0.0), (1.0, 100.0)))
        return cls(points, overhead(found.x))

    def seconds(self, *, line_rate: bool = False) -> Array:
        """Return the time of each transfer with the fitted terms, or by line rate and latency alone."""
        return _seconds(self.points, None if line_rate else self.overhead)

    def errors(self, held_out: bool, *, line_rate: bool = False) -> Errors:
        """Return the errors on the transfers that were fitted, or on those that were not."""
        chosen = (self.points.prompt_tokens > LONGEST_FITTED).to_numpy() == held_out
        predicted_s = self.seconds(line_rate=line_rate)
        return Errors.of(predicted_s[chosen], self.points.seconds.to_numpy()[chosen])

    def text(self, name: str) -> str:
        """Return the YAML file."""
        return _FILE.format(
            name=name,
            efficiency=number(self.overhead.nic_efficiency),
            setup=number(self.overhead.nic_setup_s),
            provenance=provenance(self._provenance()),
        )

    def _provenance(self) -> dict[str, Any]:
        return {
            "runs": f"{len(self.points)} transfers of qwen3-8b between nodes of H800, {PORTS} x RoCE",
            "source": "kvcache-ai/Mooncake 3b5a5941 (Apache-2.0)",
            "split": f"prompts of more than {LONGEST_FITTED} tokens held out, the others fitted",
            "fitted": asdict(self.errors(False)),
            "held_out": asdict(self.errors(True)),
            "held_out_line_rate": asdict(self.errors(True, line_rate=True)),
        }


def _seconds(points: pd.DataFrame, overhead: TransferOverhead | None) -> Array:
    """Return the time of each transfer alone on its links."""
    transfer = Transfer(link="nic", overhead=overhead)
    rate = PORTS * transfer.bandwidth(GPU, one_node=False)
    return points.bytes.to_numpy() / rate + transfer.latency(GPU, one_node=False)
