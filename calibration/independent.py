"""Profiles against timings by others, on their own machines and stacks, that no fit has seen.

``python -m calibration check DIR``: DIR holds files of Vidur and of LLMServingSim, by the names below.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import yaml

from calibration.conf import gpu_named, model_named
from calibration.fit import decode_attention, gemm, prefill_attention
from calibration.fit.errors import Errors
from calibration.fit.job import Array
from calibration.sources import llmservingsim, vidur
from calibration.sources.tidy import SourceError
from servesim.cost.gpu import Gpu
from servesim.cost.kernels.all_reduce import AllReduce
from servesim.cost.kernels.decode_attention import DecodeAttention
from servesim.cost.kernels.elementwise import Elementwise
from servesim.cost.kernels.gemm import Gemm
from servesim.cost.kernels.prefill_attention import PrefillAttention

#: The files, and the profiles that they are compared with.
VIDUR_MLP = "vidur_h100_llama2_70b_mlp.csv.gz"
VIDUR_ALL_REDUCE = "vidur_h100_dgx_all_reduce.csv.gz"
H100_LAYERS = "llmservingsim_h100_llama70b_tp4_layers.csv.gz"
H100_ATTENTION = "llmservingsim_h100_llama70b_tp4_attention.csv.gz"
RTX_DENSE = "llmservingsim_rtxpro6000_llama8b_tp1_dense.csv"
RTX_ATTENTION = "llmservingsim_rtxpro6000_llama8b_tp1_attention.csv"
FILES = (VIDUR_MLP, VIDUR_ALL_REDUCE, H100_LAYERS, H100_ATTENTION, RTX_DENSE, RTX_ATTENTION)
PROFILES = ("h100-sxm-vllm", "rtx-pro-6000-vllm")

#: Bytes per element of a row: a norm reads and writes it and the residual (vLLM: fused_add_rms_norm), rotary
#: embedding reads and writes it, the activation reads gate and up and writes their product.
ELEMENT_BYTES = {"norm": 8, "rope": 4, "activation": 6}


class Finding(NamedTuple):
    """The errors of a profile on one part of an independent table, and the datasheet's."""

    profile: str
    source: str
    operation: str
    part: str
    errors: Errors
    datasheet: Errors


def findings(folder: Path, profiles: Path) -> Iterator[Finding]:
    """Yield the errors on every table of ``folder``, with the profiles of ``profiles``.

    Raises:
        SourceError: where files are missing, or there is no profile that they could be compared with.
    """
    _refuse_what_is_missing(folder, profiles)
    llama70b, llama8b = model_named("llama3.1-70b"), model_named("llama3.1-8b")
    h100, rtx = "h100-sxm", "rtx-pro-6000"
    tables: list[tuple[str, dict[str, pd.DataFrame]]] = [
        (h100, vidur.mlp(folder / VIDUR_MLP, h100)),
        (h100, {"all_reduce": vidur.all_reduce(folder / VIDUR_ALL_REDUCE, h100)}),
        (
            h100,
            llmservingsim.layers(folder / H100_LAYERS, llama70b, h100),
        ),
        (h100, llmservingsim.attention(folder / H100_ATTENTION, h100)),
        (
            rtx,
            llmservingsim.dense(folder / RTX_DENSE, llama8b, 1, rtx),
        ),
        (
            rtx,
            llmservingsim.mixed_attention(folder / RTX_ATTENTION, llama8b, 1, rtx),
        ),
    ]
    for gpu_name, by_operation in tables:
        path = profiles / f"{gpu_name}-vllm.yaml"
        if path.exists():
            said = yaml.safe_load(path.read_text())
            for operation, rows in by_operation.items():
                yield from _compared(said, gpu_named(gpu_name), operation, rows)


def _refuse_what_is_missing(folder: Path, profiles: Path) -> None:
    """Raise one error that lists the files which are not there."""
    if missing := [name for name in FILES if not (folder / name).is_file()]:
        raise SourceError(f"{folder}: there is no {', no '.join(missing)}")
    if not any((profiles / f"{name}.yaml").is_file() for name in PROFILES):
        raise SourceError(f"{profiles}: holds neither of the profiles {' and '.join(PROFILES)}")


def _compared(said: dict[str, Any], gpu: Gpu, operation: str, rows: pd.DataFrame) -> Iterator[Finding]:
    predicted, roofline = _predicted(said, gpu, operation, rows), _roofline(gpu, operation, rows)
    measured = rows.seconds.to_numpy()
    for part, mask in _parts(gpu, operation, rows, roofline):
        if mask.any():
            errors = Errors.of(predicted[mask], measured[mask])
            datasheet = Errors.of(roofline[mask], measured[mask])
            yield Finding(said["name"], rows.source.iloc[0], operation, part, errors, datasheet)


def _predicted(said: dict[str, Any], gpu: Gpu, operation: str, rows: pd.DataFrame) -> Array:
    if operation == "gemm":
        return Gemm(**said["gemm"]["bf16"]).seconds(gpu, *(rows[name].to_numpy() for name in "mnk"))
    if operation == "decode_attention":
        return decode_attention.seconds(gpu, DecodeAttention(**said[operation]["bf16"]), rows)
    if operation == "prefill_attention":
        return prefill_attention.seconds(gpu, PrefillAttention(**said[operation]["bf16"]), rows)
    if operation == "all_reduce":
        seconds = np.empty(len(rows))
        for gpus in rows.gpus.unique():
            here = rows.gpus.eq(gpus).to_numpy()
            form = AllReduce(**said[operation][f"gpus_{gpus}"])
            seconds[here] = form.seconds(gpu, rows.bytes.to_numpy()[here])
        return seconds
    form = Elementwise(**said["quantise"]["static"])
    return form.seconds(gpu, rows.tokens.to_numpy(), rows.width.to_numpy(), ELEMENT_BYTES[operation])


def _roofline(gpu: Gpu, operation: str, rows: pd.DataFrame) -> Array:
    if operation == "gemm":
        return gemm.floor(gpu, "bf16", rows)
    if operation == "decode_attention":
        return decode_attention.floor(gpu, "bf16", rows)
    if operation == "prefill_attention":
        return prefill_attention.floor(gpu, "bf16", rows)
    if operation == "all_reduce":
        return (rows.bytes * (2 - 2 / rows.gpus) / gpu.nvlink_bytes_per_s).to_numpy()
    return (rows.tokens * rows.width * ELEMENT_BYTES[operation] / gpu.hbm_bytes_per_s).to_numpy()


def _parts(gpu: Gpu, operation: str, rows: pd.DataFrame, roofline: Array) -> Iterator[tuple[str, Array]]:
    """Yield the parts of a table that are scored by themselves."""
    if operation == "gemm":
        for low, high in ((1, 64), (65, 512), (513, 1 << 20)):
            yield (
                f"m {low} to {high}" if high < 1 << 20 else f"m from {low}",
                rows.m.between(low, high).to_numpy(),
            )
    elif operation == "decode_attention":
        possible = rows.seconds.to_numpy() >= roofline
        yield "slower than HBM allows", possible
        yield "faster than HBM allows", ~possible
    elif operation == "prefill_attention":
        yield "no prefix", rows.prefix.eq(0).to_numpy()
        yield "behind a prefix", rows.prefix.gt(0).to_numpy()
    elif operation == "all_reduce":
        for gpus in sorted(rows.gpus.unique()):
            large = rows.bytes.ge(4e6)
            yield f"{gpus} GPUs, below 4 MB", (rows.gpus.eq(gpus) & ~large).to_numpy()
            yield f"{gpus} GPUs, from 4 MB", (rows.gpus.eq(gpus) & large).to_numpy()
    else:
        yield "all", np.ones(len(rows), bool)
