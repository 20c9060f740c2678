"""A model by its own ``config.json``: the same parameters, bytes and lengths as the option that ships."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim import ConfigError, load
from servesim.check import Problem, check
from servesim.config.hf.model import described, name_of
from servesim.cost.model import Model
from tests.config.hf_configs import FP8, OTHERS, REFUSED, SHIPPED, write
from tests.cost.shipped import MODELS, model

LLAMA = SHIPPED["llama3.1-8b"]
EASY = ["ignore_capacity=true", "cluster.tensor_parallel_size=1"]


def read(said: dict[str, Any], name: str = "mine") -> Model:
    found = described(said, name)
    assert found.problems == []
    return Model(**found.fields)


def faults(*overrides: str) -> tuple[Problem, ...]:
    with pytest.raises(ConfigError) as caught:
        load(*EASY, *overrides)
    return caught.value.problems


def test_every_shipped_model_has_a_file_here() -> None:
    assert set(SHIPPED) == set(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_a_file_says_what_the_shipped_option_says(name: str) -> None:
    assert read(SHIPPED[name], name) == model(name)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("size", [1, 2, 8])
def test_weights_and_kv_of_a_file_weigh_what_those_of_the_shipped_option_do(name: str, size: int) -> None:
    own, shipped = read(SHIPPED[name]), model(name)
    assert own.parameters == shipped.parameters
    assert own.weight_bytes(size) == shipped.weight_bytes(size)
    assert own.kv_bytes_per_token("auto", size) == shipped.kv_bytes_per_token("auto", size)


@pytest.mark.parametrize("name", OTHERS)
def test_a_file_has_the_published_number_of_parameters(name: str) -> None:
    said, parameters = OTHERS[name]
    own = read(said)
    check(own)
    assert own.parameters == parameters


@given(
    hidden=st.integers(1, 64).map(lambda blocks: 64 * blocks),
    layers=st.integers(1, 100),
    groups=st.sampled_from([1, 2, 4, 8]),
    tied=st.booleans(),
)
def test_parameters_are_those_of_the_layers_and_of_the_vocabulary(
    hidden: int, layers: int, groups: int, tied: bool
) -> None:
    """Layers x (q, k, v, o + gate, up, down + two norms) + one norm + vocabulary matrices."""
    said = LLAMA | {
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": 8,
        "num_key_value_heads": groups,
        "tie_word_embeddings": tied,
    }
    head_dim, wide = hidden // 8, LLAMA["intermediate_size"]
    layer = hidden * head_dim * (8 + 2 * groups) + 8 * head_dim * hidden + 3 * hidden * wide + 2 * hidden
    vocabulary = (1 if tied else 2) * LLAMA["vocab_size"] * hidden
    assert read(said).parameters == layers * layer + hidden + vocabulary


def test_kv_heads_and_their_size_may_be_left_out_or_null() -> None:
    without = {key: value for key, value in SHIPPED["llama2-7b"].items() if key != "num_key_value_heads"}
    for said in (without, without | {"num_key_value_heads": None, "head_dim": None}):
        assert replace(read(said), name="llama2-7b") == model("llama2-7b")


@pytest.mark.parametrize(
    ("rope", "longest"),
    [
        (None, 131072),
        ({"rope_type": "llama3", "factor": 8.0}, 131072),
        ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}, 131072),
        ({"type": "yarn", "factor": 2.0}, 262144),
        ({"type": "linear", "factor": 2.0}, 262144),
        ({"type": "dynamic", "factor": 2.0}, 262144),
        ({"type": "longrope", "long_factor": [1.0]}, 131072),
    ],
)
def test_the_longest_sequence_is_what_rotary_embeddings_are_stretched_to(rope: Any, longest: int) -> None:
    for key in ("rope_scaling", "rope_parameters"):
        said = {name: value for name, value in LLAMA.items() if name != "rope_scaling"} | {key: rope}
        assert read(said).max_position_embeddings == longest


# ---- the dtype of weights


def _integers(bits: int, **more: Any) -> dict[str, Any]:
    weights = {"num_bits": bits, "type": "int", "group_size": 128, **more}
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": weights}}}


@pytest.mark.parametrize(
    ("said", "dtype"),
    [
        ({"torch_dtype": "float16"}, "bf16"),
        ({"torch_dtype": None, "dtype": "bfloat16"}, "bf16"),
        ({"torch_dtype": "float32"}, "bf16"),
        ({"quantization_config": None}, "bf16"),
        ({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}, "fp8"),
        ({"quantization_config": {"quant_method": "fbgemm_fp8"}}, "fp8"),
        ({"quantization_config": FP8}, "fp8"),
        ({"quantization_config": _integers(4)}, "int4"),
        ({"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128}}, "int4"),
        ({"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 64}}, "int4"),
        ({"quantization_config": {"quant_method": "awq", "w_bit": 4, "q_group_size": 128}}, "int4"),
        ({"quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8"}}, "fp8"),
    ],
)
def test_weights_have_the_dtype_of_the_checkpoint(said: dict[str, Any], dtype: str) -> None:
    assert read(LLAMA | said).weights_dtype == dtype


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ({"torch_dtype": "int8"}, "dtype int8"),
        ({"quantization_config": {"quant_method": "mxfp4"}}, "mxfp4"),
        ({"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}}, "bitsandbytes"),
        ({"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}}, "modelopt NVFP4"),
        ({"quantization_config": {"quant_method": "gptq", "bits": 8}}, "gptq with 8 bits"),
        ({"quantization_config": _integers(8)}, "compressed-tensors int8"),
        ({"quantization_config": _integers(4, type="float")}, "compressed-tensors float4"),
        ({"quantization_config": {"quant_method": "compressed-tensors"}}, "compressed-tensors None"),
        ({"quantization_config": [1]}, "[1]"),
    ],
)
def test_formats_that_are_not_modelled_are_refused_by_name(said: dict[str, Any], name: str) -> None:
    (message,) = described(LLAMA | said, "mine").problems
    assert message == f"quantisation {name} is not modelled in this version"


@pytest.mark.parametrize(
    ("quantisation", "words"),
    [
        (
            {"quant_method": "awq", "bits": 4, "group_size": 32},
            "groups of 32 are counted as in groups of 128",
        ),
        ({"quant_method": "gptq", "bits": 4, "group_size": -1}, "one group per row"),
        (FP8 | {"kv_cache_scheme": {"num_bits": 8, "type": "float"}}, "scheduler.kv_cache_dtype=fp8"),
    ],
)
def test_what_the_dtype_leaves_out_is_noted(quantisation: dict[str, Any], words: str) -> None:
    (note,) = described(LLAMA | {"quantization_config": quantisation}, "mine").notes
    assert words in note


# ---- what is not modelled


@pytest.mark.parametrize("repository", REFUSED)
def test_models_that_are_not_modelled_are_refused_by_name(repository: str) -> None:
    said, words = REFUSED[repository]
    found = described(said, "mine")
    assert found.fields == {}
    assert words in found.problems[0]
    assert "not modelled in this version" in found.problems[0]


def test_of_several_kinds_of_input_the_language_model_is_taken_and_it_is_said() -> None:
    """mistralai/Mistral-Small-3.1-24B: 40 layers of 5120, 32 query and 8 KV heads of 128, MLP 32768."""
    text = {
        "model_type": "mistral",
        "hidden_size": 5120,
        "intermediate_size": 32768,
        "num_hidden_layers": 40,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "vocab_size": 131072,
        "max_position_embeddings": 131072,
        "sliding_window": None,
    }
    said = {
        "architectures": ["Mistral3ForConditionalGeneration"],
        "model_type": "mistral3",
        "torch_dtype": "bfloat16",
        "text_config": text,
        "vision_config": {"hidden_size": 1024},
    }
    found = described(said, "mistral-small")
    assert Model(**found.fields).parameters == 23_572_403_200  # as Mistral-Small-24B, which has no vision
    assert found.notes == [
        "of Mistral3ForConditionalGeneration, only its text_config is modelled: no images, no audio"
    ]


def test_a_flat_file_with_vision_is_read_as_its_language_model() -> None:
    said = OTHERS["qwen2.5-7b"][0] | {
        "architectures": ["Qwen2_5_VLForConditionalGeneration"],
        "model_type": "qwen2_5_vl",
        "vision_config": {"depth": 32},
    }
    assert read(said).attention_bias
    assert "only the language model is modelled" in described(said, "mine").notes[0]


# ---- as a key


def test_a_file_stands_in_place_of_the_option(tmp_path: Path) -> None:
    path = write(tmp_path / "my-llama", LLAMA)
    for given_path in (path, path.parent):
        scenario = load(*EASY, f"model.hf_config={given_path}")
        expected = replace(model("llama3.1-8b"), name="my-llama", hf_config=str(given_path))
        assert scenario.model == expected


def test_a_draft_model_has_a_file_of_its_own(tmp_path: Path) -> None:
    chosen, key = "scheduler/speculation=draft_model", "scheduler.speculation.model.hf_config"
    path = write(tmp_path, {**LLAMA, "num_hidden_layers": 2})
    scenario = load(*EASY, chosen, f"{key}={path}")
    assert scenario.scheduler.speculation is not None
    draft = scenario.scheduler.speculation.draft(scenario.model)
    assert draft is not None
    assert (draft.num_hidden_layers, draft.hf_config) == (2, str(path))
    (problem,) = faults(chosen, f"{key}={tmp_path / 'nowhere'}")
    assert (problem.path, problem.message[:21]) == (key, "there is no such file")


def test_what_is_typed_wins_over_the_file_and_over_the_option(tmp_path: Path) -> None:
    path = write(tmp_path, LLAMA)
    typed = ["model=qwen3-32b", "model.num_hidden_layers=3", "model.weights_dtype=int4", "model.name=tiny"]
    own = load(*EASY, f"model.hf_config={path}", *typed).model
    assert (own.num_hidden_layers, own.weights_dtype, own.name) == (3, "int4", "tiny")
    assert (own.hidden_size, own.qk_norm) == (4096, False)


def test_a_file_of_options_may_name_one(tmp_path: Path) -> None:
    path = write(tmp_path / "there", LLAMA)
    write(tmp_path / "mine" / "model", f"hf_config: {path}\n", "my.yaml")
    assert load(*EASY, "model=my", config_dir=tmp_path / "mine").model.parameters == 8_030_261_248


@pytest.mark.parametrize(
    ("path", "said", "name"),
    [
        ("a/config.json", {"_name_or_path": "meta-llama/Llama-3.1-8B"}, "Llama-3.1-8B"),
        ("a/config.json", {"_name_or_path": "/models/x/"}, "x"),
        ("a/config.json", {"_name_or_path": ""}, "a"),
        ("a/config.json", {}, "a"),
        ("a/llama.json", {}, "llama"),
        ("models--Qwen--Qwen3-32B/snapshots/9216db5/config.json", {}, "Qwen3-32B"),
    ],
)
def test_what_a_model_is_called(path: str, said: dict[str, Any], name: str) -> None:
    assert name_of(Path(path), said) == name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is not JSON"),
        ("{", "is not JSON"),
        ("[1]", "must be keys with values"),
        ("[" * 100_000, "is not JSON"),
        ("{}", "is not modelled in this version"),
        ('{"model_type": "llama"}', "has no hidden_size"),
    ],
)
def test_a_file_that_is_no_config_is_refused(text: str, words: str, tmp_path: Path) -> None:
    path = write(tmp_path, text)
    problems = faults(f"model.hf_config={path}", "sed=1")
    assert any(words in problem.message for problem in problems)
    assert {problem.path for problem in problems} == {"model.hf_config", "sed"}


@pytest.mark.parametrize("path", ["/nowhere/config.json", "meta-llama/Llama-3.1-8B", ""])
def test_a_path_that_leads_nowhere_is_told(path: str) -> None:
    (problem,) = faults(f"model.hf_config={path}")
    assert "there is no such file, nor a folder with a config.json" in problem.message


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"hidden_size": float("nan")}, "model.hidden_size = nan: must be a whole number"),
        ({"num_attention_heads": 0}, "model.num_attention_heads = 0: must be at least 1"),
        ({"num_attention_heads": "32", "num_key_value_heads": None}, "model.num_attention_heads = '32'"),
        ({"head_dim": "128"}, "model.head_dim = '128': must be a whole number"),
        ({"hidden_size": "wide"}, "model.hidden_size = 'wide': must be a whole number"),
        ({"num_hidden_layers": 0}, "model.num_hidden_layers = 0: must be at least 1"),
        ({"num_key_value_heads": 7}, "model.num_key_value_heads = 7: must divide"),
        ({"vocab_size": float("nan")}, "model.vocab_size = nan: must be a whole number"),
        ({"tie_word_embeddings": 3}, "model.tie_word_embeddings = 3: must be true or false"),
    ],
)
def test_what_is_wrong_with_a_field_of_a_file_names_the_file(
    change: dict[str, Any], line: str, tmp_path: Path
) -> None:
    path = write(tmp_path, LLAMA | change)
    (problem,) = faults(f"model.hf_config={path}")
    assert str(problem).startswith(line)
    assert str(problem).endswith(f"(from {path})")


def test_a_width_that_the_heads_do_not_divide_needs_a_head_dim(tmp_path: Path) -> None:
    path = write(
        tmp_path, {key: value for key, value in LLAMA.items() if key != "head_dim"} | {"hidden_size": 4097}
    )
    (problem,) = faults(f"model.hf_config={path}")
    assert problem.message == "has no head_dim, and its hidden_size 4097 is no multiple of its 32 heads"
    assert load(*EASY, f"model.hf_config={path}", "model.head_dim=128").model.head_dim == 128
    given_there = write(tmp_path, LLAMA | {"hidden_size": 4097, "head_dim": 128})
    assert load(*EASY, f"model.hf_config={given_there}").model.hidden_size == 4097


def test_nvidias_file_beside_it_tells_the_quantisation(tmp_path: Path) -> None:
    path = write(tmp_path, LLAMA)
    beside = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8"}}
    write(tmp_path, beside, "hf_quant_config.json")
    assert load(*EASY, f"model.hf_config={path}").model.weights_dtype == "fp8"


def test_notes_reach_the_summary_and_the_screen(tmp_path: Path) -> None:
    import servesim
    from servesim.screen.notes import notes

    path = write(tmp_path, LLAMA | {"mlp_bias": True})
    small = ["cluster.replicas=1", "cluster.tensor_parallel_size=1", "workload.requests=20"]
    summary = servesim.run(load(f"model.hf_config={path}", *small)).summary
    assert summary["scenario"]["notes"] == [f"{path}: biases of the MLP are not counted"]
    assert f"{path}: biases of the MLP are not counted" in list(notes(summary, []))


def test_a_path_with_any_letters_is_taken_as_it_stands(tmp_path: Path) -> None:
    path = write(tmp_path / "a b,(c)=d's", LLAMA)
    assert load(*EASY, f"model.hf_config={path}").model.hidden_size == 4096
