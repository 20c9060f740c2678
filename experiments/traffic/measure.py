"""Measure the lengths of an Azure LLM inference trace: print the quantile table that servesim draws from.

Usage: python experiments/traffic/measure.py TRACE.csv > conf/workload/lengths/NAME.yaml
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from servesim.workload.formats import read

#: Every percent; finer where few requests carry much of the mean.
SHARES = np.unique(
    np.concatenate(
        [
            [0.0, 0.001, 0.002, 0.005],
            np.arange(1, 90) / 100,
            np.arange(180, 198) / 200,
            np.arange(990, 1000) / 1000,
            [0.9995, 1.0],
        ]
    )
)


def ranks(values: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the rank of each value, from 0; equal values share the mean of their ranks."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts + 1) / 2)[place]


def rank_correlation(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Return Spearman's correlation: Pearson's correlation of the ranks."""
    return float(np.corrcoef(ranks(first), ranks(second))[0, 1])


def quantiles(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the length at each of ``SHARES``, in whole tokens."""
    return np.rint(np.quantile(lengths, SHARES)).astype(np.int64)


def measure(path: Path) -> str:
    """Return the text of the lengths file of a trace."""
    recording = read(path, "azure")
    lengths = recording.input_tokens, recording.output_tokens
    rows = zip(SHARES.tolist(), *(quantiles(column).tolist() for column in lengths), strict=True)
    return "\n".join(
        [
            f"# Lengths measured from {path.name} ({len(lengths[0]):,} requests of November 2023):",
            f"# mean {lengths[0].mean():.1f} tokens in, {lengths[1].mean():.1f} out.",
            "# Source: https://github.com/Azure/AzurePublicDataset, by Microsoft, licence CC-BY-4.0;",
            "# reduced to quantiles by experiments/traffic/measure.py.",
            "kind: quantiles",
            f"rank_correlation: {rank_correlation(*lengths):.3f} # of input and output (Spearman)",
            "table: # share of the requests that are not longer, input tokens, output tokens",
            *(f"  - [{share:g}, {tokens_in}, {tokens_out}]" for share, tokens_in, tokens_out in rows),
            "",
        ]
    )


if __name__ == "__main__":
    print(measure(Path(sys.argv[1])), end="")
