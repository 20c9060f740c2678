"""The models and GPUs of ``conf/``, read without Hydra, and strategies over them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st

from servesim.cost.gpu import Gpu
from servesim.cost.model import Model
from servesim.cost.roofline import Roofline, RooflineStepTime

CONF = Path(__file__).parents[2] / "conf"
MODELS = sorted(path.stem for path in (CONF / "model").glob("*.yaml"))
GPUS = sorted(path.stem for path in (CONF / "gpu").glob("*.yaml"))

DENSE = ["llama3.1-8b", "llama3.1-70b", "llama2-7b", "qwen3-32b"]  # enough variety to be quick
TENSOR_PARALLEL_SIZES = st.sampled_from([1, 2, 4, 8, 16])
WEIGHTS_DTYPES = st.sampled_from(["bf16", "fp8", "int4"])
KV_DTYPES = st.sampled_from(["auto", "bf16", "fp8"])


@cache
def values(group: str, name: str) -> dict[str, Any]:
    """Return what ``conf/<group>/<name>.yaml`` says."""
    return dict(yaml.safe_load((CONF / group / f"{name}.yaml").read_text()))


def model(name: str, **changes: Any) -> Model:
    """Return a model of ``conf/model``, some fields changed."""
    return Model(**values("model", name) | changes)


def gpu(name: str, **changes: Any) -> Gpu:
    """Return a GPU of ``conf/gpu``, some fields changed."""
    return Gpu(**values("gpu", name) | changes)


def step_time(
    a_model: Model,
    a_gpu: Gpu,
    tensor_parallel_size: int = 1,
    kv: Any = "auto",
    seqs: int = 64,
    tokens: int = 512,
) -> RooflineStepTime:
    """Return roofline step times with small tables."""
    return Roofline().step_time(
        a_model, a_gpu, tensor_parallel_size, kv, max_num_seqs=seqs, max_num_batched_tokens=tokens
    )


@st.composite
def replicas(draw: st.DrawFn) -> tuple[Model, Gpu, int, str]:
    """Draw a model with its weights' dtype, a GPU, a tensor parallel size and a KV dtype."""
    a_model = model(draw(st.sampled_from(DENSE)), weights_dtype=draw(WEIGHTS_DTYPES))
    return a_model, gpu(draw(st.sampled_from(GPUS))), draw(TENSOR_PARALLEL_SIZES), draw(KV_DTYPES)


@st.composite
def steps(draw: st.DrawFn) -> tuple[int, int, list[tuple[int, int]]]:
    """Draw a step: decodes, their total context, and chunks of (new, cached) tokens; never empty."""
    chunk = st.tuples(st.integers(1, 700), st.integers(0, 5000))
    chunks = draw(st.lists(chunk, max_size=4))
    sequences = draw(st.integers(0 if chunks else 1, 700))
    context = sequences + draw(st.integers(0, 200_000)) if sequences else 0
    return sequences, context, chunks
