"""The compiled decode step against its exact formula, and what compiling takes, over all that is shipped."""

from itertools import product
from time import process_time

import numpy as np
import pytest

from servesim.cost.fitted import FittedStepTime
from servesim.cost.layer import Layer
from servesim.cost.profile import Profile
from servesim.cost.step_time import FloatArray, GraphSizes
from tests.cost.fitted import NO_OVERHEAD
from tests.cost.shipped import MODELS, gpu, model, values

SEQS, TOKENS = 1024, 8192
PROFILES = ["h100-sxm-vllm", "h200-sxm-trtllm", "b200-sxm-sglang", "b200-sxm-trtllm", "l40s-vllm"]
#: Batches beside CUDA-graph sizes and multiples of 4, and mean contexts at ends of pieces and between.
BATCHES = [1, 2, 3, 5, 8, 17, 64, 65, 127, 256, 500, 511, 777, 1024]
MEANS = sorted({*np.geomspace(1, 131_072, 61).astype(int).tolist(), 2, 3, 16, 24, 36, 54, 65_536, 131_071})


def profile(name: str) -> Profile:
    said = dict(values("calibration", name))
    said.pop("kind")
    return Profile(**said)


def compiled(a_profile: Profile, name: str, gpus: int, kv: str = "auto", **options: int) -> FittedStepTime:
    sizes = {"max_num_seqs": SEQS, "max_num_batched_tokens": TOKENS} | options
    a_gpu = gpu(a_profile.gpu)
    return a_profile.step_time(model(name), a_gpu, gpus, kv, **sizes, overhead=NO_OVERHEAD)  # type: ignore[arg-type]


def exact(
    a_profile: Profile, name: str, gpus: int, kv: str, batch: FloatArray, length: FloatArray
) -> FloatArray:
    """Return the sum of the forms at each batch (rows) and mean length (columns)."""
    a_model, a_gpu = model(name), gpu(a_profile.gpu)
    kernels = a_profile.kernels(a_model, a_gpu, gpus, kv)  # type: ignore[arg-type]
    layer = Layer(a_model, a_gpu, gpus, kv, kernels)  # type: ignore[arg-type]
    beside = a_model.num_hidden_layers * layer.seconds(GraphSizes(SEQS, TOKENS).padded_array(batch))
    heads = (a_model.num_attention_heads // gpus, a_model.kv_heads_per_gpu(gpus), a_model.head_dim)
    attention = kernels.decode.seconds(a_gpu, batch[:, None], *heads, length[None, :])
    return (beside + layer.head_seconds(batch))[:, None] + a_model.num_hidden_layers * attention


@pytest.mark.parametrize("source", PROFILES)
@pytest.mark.parametrize("kv", ["bf16", "fp8"])
@pytest.mark.parametrize(("name", "gpus"), [("llama3.1-8b", 1), ("llama2-7b", 2), ("llama3.1-405b", 8)])
def test_decode_is_within_half_a_percent_of_the_formula(source: str, name: str, gpus: int, kv: str) -> None:
    """From one sequence of one token to 1,024 of 131,072 each; worst where attention is most of a step."""
    a_profile = profile(source)
    times = compiled(a_profile, name, gpus, kv)
    found = np.array(
        [
            [
                base_s + slope_s * batch * mean
                for mean in MEANS
                for base_s, slope_s, _ in [times.decode(batch, batch * mean)]
            ]
            for batch in BATCHES
        ]
    )
    formula = exact(a_profile, name, gpus, kv, np.array(BATCHES, float), np.array(MEANS, float))
    assert np.abs(found / formula - 1).max() < 0.005


@pytest.mark.parametrize("source", PROFILES)
def test_lengths_at_which_pieces_end_are_exact(source: str) -> None:
    a_profile = profile(source)
    times = compiled(a_profile, "llama3.1-70b", 4)
    for batch in (1, 17, 1024):
        ends, context = [], batch
        while context < batch * 131_072:
            base_s, slope_s, limit = times.decode(batch, context)
            ends.append((limit / batch, base_s + slope_s * limit))
            context = int(limit) + 1
        lengths, found = np.array(ends).T
        formula = exact(a_profile, "llama3.1-70b", 4, "auto", np.array([batch], float), lengths)[0]
        assert found == pytest.approx(formula, rel=1e-12)


@pytest.mark.parametrize("source", ["h100-sxm-vllm", "h200-sxm-vllm", "b200-sxm-vllm"])
def test_every_model_compiles_at_every_parallelism_in_less_than_0_3_s(source: str) -> None:
    """CPU seconds for 256 sequences and 8,192 tokens; some 0.01 are usual."""
    a_profile = profile(source)
    for name, gpus in product(MODELS, (1, 2, 4, 8)):
        start = process_time()
        compiled(a_profile, name, gpus, max_num_seqs=256)
        assert process_time() - start < 0.3, (name, gpus)
