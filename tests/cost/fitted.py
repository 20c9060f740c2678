"""A profile made by hand, with round coefficients of the size of an H100's, and step times from it."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from servesim.cost.fitted import FittedStepTime
from servesim.cost.gpu import Gpu
from servesim.cost.model import Model
from servesim.cost.overhead import EngineOverhead
from servesim.cost.profile import Profile
from servesim.cost.profile_content import CHIP, LINK
from tests.cost.shipped import gpu

H100 = gpu("h100-sxm")

_GEMM = {
    "multiprocessors": 132,
    "launch_s": 2.5e-6,
    "bandwidth": 0.85,
    "input_bandwidth": 4.0,
    "output_bandwidth": 1.5,
    "tile_rate": 0.85,
    "half_tile": 0.5,
    "skinny_tile": 0.5,
    "wave_quantisation": 0.05,
    "overlap": 2.6,
}
_DECODE = {
    "multiprocessors": 132,
    "launch_s": 11e-6,
    "split_s": 1e-6,
    "wave_s": 3.7e-6,
    "bandwidth": 0.93,
    "stream_bandwidth": 0.8,
    "overlap": 1.4,
    "cache_bytes": 43e6,
    "cache_bandwidth": 3.0,
}
_PREFILL = {
    "multiprocessors": 132,
    "launch_s": 12e-6,
    "block_rate": 0.7,
    "tile_s": 2e-6,
    "chain_s": 1.2e-6,
    "bandwidth": 0.6,
    "kv_bandwidth": 0.5,
    "overlap": 2.5,
    "token_s": 1e-9,
    "short_tile": 0.6,
}
_ALL_REDUCE = {
    2: (1e-4, 0.7, 4e-6, 0.5),
    4: (4.6e-6, 0.2, 9e-6, 0.44),
    8: (4.8e-6, 0.08, 10e-6, 0.46),
}
_QUANTISE = {
    "launch_s": 2e-6,
    "row_s": 0.5e-6,
    "cache_bytes": 17e6,
    "cache_bandwidth": 1.9,
    "bandwidth": 0.8,
}


def _both(ranges: dict[str, list[int]], other: str = "fp8") -> dict[str, dict[str, list[int]]]:
    """Return the same ranges for BF16 and another format."""
    return {"bf16": ranges, other: ranges}


SAID: dict[str, Any] = {
    "name": "h100-sxm-made",
    "gpu": "h100-sxm",
    "engine": "made",
    "engine_version": "1",
    "datasheet": {name: getattr(H100, name) for name in (*CHIP, LINK)},
    "gemm": {
        "bf16": {"dtype": "bf16", **_GEMM, "narrow_tile": 0.7, "split_depth": 4000.0},
        "fp8": {"dtype": "fp8", **_GEMM, "middle_tile": 0.8, "fill_depth": 700.0},
    },
    "decode_attention": {
        "bf16": {"kv_dtype": "bf16", **_DECODE},
        "fp8": {"kv_dtype": "fp8", **_DECODE, "stream_bandwidth": 0.3, "overlap": 1.0},
    },
    "prefill_attention": {
        "bf16": {"dtype": "bf16", "kv_dtype": "bf16", **_PREFILL, "packing": "always"},
        "bf16_kv_fp8": {
            "dtype": "bf16",
            "kv_dtype": "fp8",
            **_PREFILL,
            "kv_bandwidth": 0.3,
            "packing": "single",
        },
    },
    "all_reduce": {
        f"gpus_{gpus}": dict(
            zip(
                ("gpus", "quick_s", "quick_rate", "steady_s", "steady_rate"),
                (gpus, *numbers),
                strict=True,
            )
        )
        for gpus, numbers in _ALL_REDUCE.items()
    },
    "quantise": {"static": _QUANTISE},
    "ranges": {
        "gemm": _both({"m": [1, 32768], "n": [512, 65536], "k": [512, 65536]}),
        "decode_attention": _both({"batch": [1, 2048], "kv_heads": [1, 8], "length": [2, 131072]}),
        "prefill_attention": _both(
            {"batch": [1, 256], "heads": [1, 96], "length": [1, 16384]}, "bf16_kv_fp8"
        ),
        "all_reduce": {f"gpus_{gpus}": {"bytes": [8192, 134217728]} for gpus in (2, 4, 8)},
        "quantise": {"static": {"m": [1, 32768], "k": [512, 65536]}},
    },
}

NO_OVERHEAD = EngineOverhead("none", "made", "1", 0.0, 0.0, 1.0)
OVERHEAD = EngineOverhead("some", "made", "1", 8e-4, 5e-5, 1.2)


def profile(**changes: Any) -> Profile:
    """Return the profile, some keys changed."""
    return Profile(**{**SAID, **changes})


def fitted(
    a_model: Model,
    a_gpu: Gpu = H100,
    tensor_parallel_size: int = 1,
    kv: Any = "auto",
    *,
    overhead: EngineOverhead | None = OVERHEAD,
    seqs: int = 64,
    tokens: int = 512,
) -> FittedStepTime:
    """Return fitted step times with small tables."""
    return profile().step_time(
        a_model,
        a_gpu,
        tensor_parallel_size,
        kv,
        max_num_seqs=seqs,
        max_num_batched_tokens=tokens,
        overhead=overhead,
    )


@st.composite
def decodes(draw: st.DrawFn) -> tuple[int, int]:
    """Draw decodes of a step: sequences and their total context."""
    sequences = draw(st.integers(1, 1100))
    length = draw(st.one_of(st.integers(1, 300), st.integers(1, 130_000)))
    return sequences, sequences * length + draw(st.integers(0, sequences - 1))
