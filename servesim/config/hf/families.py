"""Which models of Hugging Face are dense decoders as servesim models them, and what sets others apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple


class Family(NamedTuple):
    """What the code of a model type fixes, whatever its ``config.json`` says.

    ``attention_bias`` is about query, key and value; None: as the file says, else without. ``tied`` is
    whether embedding and LM head are one matrix where the file does not say. ``head`` is the class that
    generates text.
    """

    head: str
    attention_bias: bool | None = None
    qk_norm: bool = False
    tied: bool = False


#: By ``model_type``. Facts from the classes of transformers (src/transformers/models/<type>): Qwen2 has
#: biases on query, key and value in code; Qwen3 normalises the heads of query and key; Gemma ties by default.
FAMILIES = {
    "llama": Family("LlamaForCausalLM"),
    "mistral": Family("MistralForCausalLM", attention_bias=False),
    "qwen2": Family("Qwen2ForCausalLM", attention_bias=True),
    "qwen2_vl": Family("Qwen2VLForConditionalGeneration", attention_bias=True),
    "qwen2_vl_text": Family("Qwen2VLForConditionalGeneration", attention_bias=True),
    "qwen2_5_vl": Family("Qwen2_5_VLForConditionalGeneration", attention_bias=True),
    "qwen2_5_vl_text": Family("Qwen2_5_VLForConditionalGeneration", attention_bias=True),
    "qwen3": Family("Qwen3ForCausalLM", qk_norm=True),
    "qwen3_vl_text": Family("Qwen3VLForConditionalGeneration", qk_norm=True),
    "phi3": Family("Phi3ForCausalLM", attention_bias=False),
    "gemma": Family("GemmaForCausalLM", tied=True),
    "granite": Family("GraniteForCausalLM"),
}

#: Keys that count the experts of a layer: Mixtral, gpt-oss and Llama 4; Qwen and Jamba; DeepSeek.
_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
#: Keys of layers without attention, or with linear attention: Mamba, Jamba, Nemotron-H, Bamba, Qwen3-Next.
_RECURRENT = (
    "mamba_d_state",
    "mamba_d_conv",
    "mamba_num_heads",
    "ssm_state_size",
    "state_size",
    "hybrid_override_pattern",
    "attn_layer_period",
    "layers_block_type",
    "linear_num_key_heads",
    "full_attention_interval",
)


def unmodelled(text: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a model has that is not modelled, by its names.

    A window that is no narrower than the longest sequence, or that the file switches off, is none.
    """
    experts = next((text[key] for key in _EXPERTS if _is_number(text.get(key)) and text[key] > 1), None)
    if experts is not None or text.get("moe_intermediate_size"):
        yield f"a mixture of {experts or 'several'} experts"
    if text.get("kv_lora_rank"):
        yield "multi-head latent attention"
    if any(text.get(key) for key in _RECURRENT) or _has_layers(text, "linear", "mamba", "conv", "recurrent"):
        yield "layers without full attention (Mamba or linear attention)"
    if (
        text.get("attention_chunk_size")
        or text.get("dual_chunk_attention_config")
        or _has_layers(text, "chunked")
    ):
        yield "attention in chunks"
    window: Any = text.get("sliding_window")
    longest: Any = text.get("max_position_embeddings")
    narrow = _is_number(window) and not (_is_number(longest) and window >= longest)
    if _has_layers(text, "sliding") or (
        narrow and text.get("use_sliding_window") is not False and not text.get("layer_types")
    ):
        yield f"attention over a window of {window:,} tokens" if narrow else "attention over a window"
    if text.get("is_encoder_decoder"):
        yield "an encoder"


def _has_layers(text: Mapping[str, Any], *kinds: str) -> bool:
    """Tell whether some layer's type begins with one of these words."""
    layers = text.get("layer_types")
    return isinstance(layers, list) and any(str(layer).startswith(kinds) for layer in layers)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
