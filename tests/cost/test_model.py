"""Parameters, weight bytes and KV bytes of the shipped models."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.check import ConfigError, check
from tests.cost.shipped import DENSE, KV_DTYPES, MODELS, TENSOR_PARALLEL_SIZES, WEIGHTS_DTYPES, model

#: As the checkpoints on Hugging Face report them, embeddings and LM head included.
PUBLISHED_PARAMETERS = {
    "codellama-34b": 33_743_970_304,
    "llama2-7b": 6_738_415_616,
    "llama2-70b": 68_976_648_192,
    "llama3.1-8b": 8_030_261_248,
    "llama3.1-70b": 70_553_706_496,
    "llama3.1-405b": 405_853_388_800,
    "qwen3-32b": 32_762_123_264,
}


@pytest.mark.parametrize("name", MODELS)
def test_shipped_models_have_the_published_number_of_parameters(name: str) -> None:
    check(model(name))
    assert model(name).parameters == PUBLISHED_PARAMETERS[name]


def test_llama_8b_by_hand() -> None:
    """Llama-3.1-8B: 32 layers of 4096, 32 query and 8 KV heads of 128, MLP 14336, vocabulary 128256.

    qkv 4096 x 6144 + o 4096 x 4096 + gate, up, down 3 x 4096 x 14336 + two norms 8192 = 218,112,000;
    x 32 + final norm 4096 + embedding and head 2 x 128256 x 4096 = 8,030,261,248; x 2 bytes = 16.06 GB.
    """
    llama = model("llama3.1-8b")
    layer = 4096 * 6144 + 4096 * 4096 + 3 * 4096 * 14336 + 8192
    assert llama.parameters == 32 * layer + 4096 + 2 * 128256 * 4096
    assert llama.weight_bytes() == 2 * llama.parameters
    assert llama.weight_bytes() / 1e9 == pytest.approx(16.06, abs=0.005)


def test_quantised_weights_leave_the_vocabulary_in_bf16() -> None:
    """Llama-3.1-70B: 68.45e9 linear weights, and 2 x 128256 x 8192 = 2.10e9 of vocabulary.

    FP8: 68.45 + 2 x 2.10 = 72.65 GB. int4: 68.45e9 x (4 + 20/128) bits = 35.56 GB, + 4.20 GB = 39.77 GB.
    """
    vocabulary = 2 * 128256 * 8192 * 2
    fp8, int4 = (model("llama3.1-70b", weights_dtype=dtype) for dtype in ("fp8", "int4"))
    assert fp8.linear_bytes() == 68_451_041_280
    assert fp8.weight_bytes() - fp8.linear_bytes() == pytest.approx(vocabulary, rel=1e-3)
    assert int4.linear_bytes() == fp8.linear_bytes() * (4 + 20 / 128) / 8
    assert int4.weight_bytes() - int4.linear_bytes() == pytest.approx(vocabulary, rel=1e-3)


def test_tied_embeddings_are_stored_once_and_biases_are_counted() -> None:
    llama = model("llama3.1-8b")
    tied = model("llama3.1-8b", tie_word_embeddings=True)
    biased = model("llama3.1-8b", attention_bias=True)
    assert llama.parameters - tied.parameters == 128256 * 4096
    assert llama.weight_bytes() - tied.weight_bytes() == 2 * 128256 * 4096
    assert biased.parameters - llama.parameters == 32 * 6144
    assert biased.weight_bytes(8) - llama.weight_bytes(8) == 2 * 32 * 6144 / 8


@given(name=st.sampled_from(DENSE), dtype=WEIGHTS_DTYPES, size=TENSOR_PARALLEL_SIZES)
def test_gpus_share_the_weights_and_repeat_only_norms_and_kv_heads(name: str, dtype: str, size: int) -> None:
    """All GPUs together hold the model, once more its norms per further GPU, and the repeated KV heads."""
    whole = model(name, weights_dtype=dtype)
    copies = size * whole.kv_heads_per_gpu(size) / whole.num_key_value_heads
    key_value = 2 * whole.num_key_value_heads * whole.head_dim * whole.hidden_size * whole.num_hidden_layers
    bytes_per_weight = whole.linear_bytes() / sum(
        linear.parameters * whole.num_hidden_layers for linear in whole.linears()
    )
    norms = (2 * whole.hidden_size + 2 * whole.head_dim * whole.qk_norm) * whole.num_hidden_layers
    repeated = 2 * (size - 1) * (norms + whole.hidden_size)
    expected = whole.weight_bytes() + repeated + (copies - 1) * key_value * bytes_per_weight
    assert size * whole.weight_bytes(size) == pytest.approx(expected, abs=2 * size)


def test_kv_bytes_per_token_of_llama_70b() -> None:
    """2 (key, value) x 80 layers x 8 KV heads x 128 x 2 bytes = 327,680 bytes per token in BF16."""
    llama = model("llama3.1-70b")
    assert llama.kv_bytes_per_token() == llama.kv_bytes_per_token("bf16") == 327_680
    assert llama.kv_bytes_per_token("fp8") == 163_840


@given(name=st.sampled_from(DENSE), kv=KV_DTYPES, size=TENSOR_PARALLEL_SIZES)
def test_kv_heads_are_split_then_replicated(name: str, kv: str, size: int) -> None:
    llama = model(name)
    whole, per_gpu = llama.kv_bytes_per_token(kv), llama.kv_bytes_per_token(kv, size)
    if size <= llama.num_key_value_heads:
        assert per_gpu * size == whole
    else:
        assert per_gpu * llama.num_key_value_heads == whole


def test_tensor_parallel_size_must_divide_what_it_splits() -> None:
    llama = model("llama3.1-70b")  # 64 query heads, 8 KV heads, MLP 28672, vocabulary 128256 = 64 x 2004
    assert not [problem for size in (1, 2, 4, 8, 16) for problem in llama.tensor_parallel_problems(size)]
    (three,) = map(str, llama.tensor_parallel_problems(3))
    parts = "the 64 query heads, the 8 KV heads (or be a multiple of 8) and the intermediate size 28672"
    assert three == f"tensor_parallel_size = 3: must divide {parts} of llama3.1-70b"  # 128256 = 3 x 42752
    assert "vocabulary 128256" in str(*llama.tensor_parallel_problems(5))


def test_a_vocabulary_is_padded_before_it_is_split() -> None:
    odd = model("llama3.1-8b", vocab_size=128_001)  # padded to 128,064 = 64 x 2001
    assert not list(odd.tensor_parallel_problems(8))


def test_kv_heads_must_divide_the_query_heads() -> None:
    with pytest.raises(ConfigError, match=r"num_key_value_heads = 6: must divide num_attention_heads = 32"):
        check(model("llama3.1-8b", num_key_value_heads=6))


def test_unknown_dtypes_are_refused() -> None:
    with pytest.raises(ConfigError, match="weights_dtype = 'fp16': must be bf16"):
        check(model("llama3.1-8b", weights_dtype="fp16"))
