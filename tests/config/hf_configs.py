"""``config.json`` files written by hand from public facts, each with its repository on Hugging Face."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
_LLAMA_3: dict[str, Any] = _LLAMA | {
    "attention_bias": False,
    "mlp_bias": False,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131072,
    "vocab_size": 128256,
    "rope_scaling": {
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
        "rope_type": "llama3",
    },
}


def _sizes(hidden: int, intermediate: int, layers: int, heads: int, **more: Any) -> dict[str, Any]:
    return {
        "hidden_size": hidden,
        "intermediate_size": intermediate,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        **more,
    }


#: Linear layers in FP8, as compressed-tensors writes it (RedHatAI/Meta-Llama-3.1-70B-Instruct-FP8).
FP8 = {
    "quant_method": "compressed-tensors",
    "format": "float-quantized",
    "ignore": ["lm_head"],
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "weights": {"num_bits": 8, "type": "float", "strategy": "tensor", "symmetric": True},
            "input_activations": {"num_bits": 8, "type": "float", "strategy": "tensor"},
        }
    },
}

#: By the name of the option in ``conf/model`` that is the same model.
SHIPPED: dict[str, dict[str, Any]] = {
    # meta-llama/Llama-2-7b-hf
    "llama2-7b": _LLAMA
    | {"vocab_size": 32000, "max_position_embeddings": 4096, "torch_dtype": "float16"}
    | _sizes(4096, 11008, 32, 32, num_key_value_heads=32),
    # meta-llama/Llama-2-70b-hf
    "llama2-70b": _LLAMA
    | {"vocab_size": 32000, "max_position_embeddings": 4096, "torch_dtype": "float16", "rope_scaling": None}
    | _sizes(8192, 28672, 80, 64, num_key_value_heads=8),
    # codellama/CodeLlama-34b-hf
    "codellama-34b": _LLAMA
    | {"vocab_size": 32000, "max_position_embeddings": 16384, "rope_theta": 1000000}
    | _sizes(8192, 22016, 48, 64, num_key_value_heads=8),
    # meta-llama/Llama-3.1-8B
    "llama3.1-8b": _LLAMA_3 | _sizes(4096, 14336, 32, 32),
    # RedHatAI/Meta-Llama-3.1-70B-Instruct-FP8
    "llama3.1-70b": _LLAMA_3 | _sizes(8192, 28672, 80, 64, quantization_config=FP8),
    # RedHatAI/Meta-Llama-3.1-405B-Instruct-FP8
    "llama3.1-405b": _LLAMA_3 | _sizes(16384, 53248, 126, 128, quantization_config=FP8, head_dim=None),
    # Qwen/Qwen3-32B
    "qwen3-32b": {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "attention_bias": False,
        "head_dim": 128,
        "max_position_embeddings": 40960,
        "max_window_layers": 64,
        "num_key_value_heads": 8,
        "rope_scaling": None,
        "sliding_window": None,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "use_sliding_window": False,
        "vocab_size": 151936,
    }
    | _sizes(5120, 25600, 64, 64),
}

#: Others, with the number of parameters that the checkpoint on Hugging Face reports.
OTHERS: dict[str, tuple[dict[str, Any], int]] = {
    # mistralai/Mistral-7B-Instruct-v0.3
    "mistral-7b": (
        {
            "architectures": ["MistralForCausalLM"],
            "model_type": "mistral",
            "max_position_embeddings": 32768,
            "num_key_value_heads": 8,
            "sliding_window": None,
            "tie_word_embeddings": False,
            "torch_dtype": "bfloat16",
            "vocab_size": 32768,
        }
        | _sizes(4096, 14336, 32, 32),
        7_248_023_552,
    ),
    # Qwen/Qwen2.5-7B-Instruct: biases on query, key and value that the file does not speak of
    "qwen2.5-7b": (
        {
            "architectures": ["Qwen2ForCausalLM"],
            "model_type": "qwen2",
            "max_position_embeddings": 32768,
            "max_window_layers": 28,
            "num_key_value_heads": 4,
            "sliding_window": 131072,
            "tie_word_embeddings": False,
            "torch_dtype": "bfloat16",
            "use_sliding_window": False,
            "vocab_size": 152064,
        }
        | _sizes(3584, 18944, 28, 28),
        7_615_616_512,
    ),
    # Qwen/Qwen3-0.6B: heads that are wider than hidden_size / heads, and one matrix for embedding and head
    "qwen3-0.6b": (
        {
            "architectures": ["Qwen3ForCausalLM"],
            "model_type": "qwen3",
            "head_dim": 128,
            "max_position_embeddings": 40960,
            "num_key_value_heads": 8,
            "tie_word_embeddings": True,
            "torch_dtype": "bfloat16",
            "vocab_size": 151936,
        }
        | _sizes(1024, 3072, 28, 16),
        596_049_920,
    ),
    # microsoft/Phi-3-mini-128k-instruct: its window is no narrower than its longest sequence
    "phi3-mini": (
        {
            "architectures": ["Phi3ForCausalLM"],
            "model_type": "phi3",
            "max_position_embeddings": 131072,
            "num_key_value_heads": 32,
            "original_max_position_embeddings": 4096,
            "rope_scaling": {"type": "longrope", "long_factor": [1.0], "short_factor": [1.0]},
            "sliding_window": 262144,
            "tie_word_embeddings": False,
            "torch_dtype": "bfloat16",
            "vocab_size": 32064,
        }
        | _sizes(3072, 8192, 32, 32),
        3_821_079_552,
    ),
    # google/gemma-7b: tied without saying so
    "gemma-7b": (
        {
            "architectures": ["GemmaForCausalLM"],
            "model_type": "gemma",
            "head_dim": 256,
            "max_position_embeddings": 8192,
            "num_key_value_heads": 16,
            "torch_dtype": "bfloat16",
            "vocab_size": 256000,
        }
        | _sizes(3072, 24576, 28, 16),
        8_537_680_896,
    ),
}

#: Models that are recognised and not modelled, by their repository, each with a word of why.
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "mistralai/Mixtral-8x7B-v0.1": (
        {"architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "num_local_experts": 8},
        "MixtralForCausalLM has a mixture of 8 experts",
    ),
    "Qwen/Qwen3-30B-A3B": (
        {"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "num_experts": 128},
        "a mixture of 128 experts",
    ),
    "deepseek-ai/DeepSeek-V3": (
        {
            "architectures": ["DeepseekV3ForCausalLM"],
            "model_type": "deepseek_v3",
            "kv_lora_rank": 512,
            "n_routed_experts": 256,
        },
        "a mixture of 256 experts and multi-head latent attention",
    ),
    "openai/gpt-oss-20b": (
        {
            "architectures": ["GptOssForCausalLM"],
            "model_type": "gpt_oss",
            "num_local_experts": 32,
            "sliding_window": 128,
            "layer_types": ["sliding_attention", "full_attention"],
        },
        "a mixture of 32 experts and attention over a window of 128 tokens",
    ),
    "google/gemma-2-9b": (
        {
            "architectures": ["Gemma2ForCausalLM"],
            "model_type": "gemma2",
            "sliding_window": 4096,
            "max_position_embeddings": 8192,
        },
        "attention over a window of 4,096 tokens",
    ),
    "google/gemma-3-12b-it": (
        {
            "architectures": ["Gemma3ForConditionalGeneration"],
            "model_type": "gemma3",
            "text_config": {"model_type": "gemma3_text", "sliding_window": 1024, "hidden_size": 3840},
        },
        "Gemma3ForConditionalGeneration has attention over a window of 1,024 tokens",
    ),
    "ai21labs/AI21-Jamba-1.5-Mini": (
        {
            "architectures": ["JambaForCausalLM"],
            "model_type": "jamba",
            "attn_layer_period": 8,
            "mamba_d_state": 16,
            "num_experts": 16,
        },
        "layers without full attention",
    ),
    "nvidia/Nemotron-H-8B-Base-8K": (
        {
            "architectures": ["NemotronHForCausalLM"],
            "model_type": "nemotron_h",
            "hybrid_override_pattern": "M-M-M*-",
        },
        "layers without full attention",
    ),
    "Qwen/Qwen3-Next-80B-A3B-Instruct": (
        {
            "architectures": ["Qwen3NextForCausalLM"],
            "model_type": "qwen3_next",
            "full_attention_interval": 4,
            "num_experts": 512,
        },
        "a mixture of 512 experts and layers without full attention",
    ),
    "meta-llama/Llama-4-Scout-17B-16E": (
        {
            "architectures": ["Llama4ForConditionalGeneration"],
            "model_type": "llama4",
            "text_config": {
                "model_type": "llama4_text",
                "num_local_experts": 16,
                "attention_chunk_size": 8192,
            },
        },
        "a mixture of 16 experts and attention in chunks",
    ),
    "mistralai/Mistral-7B-v0.1": (
        {
            "architectures": ["MistralForCausalLM"],
            "model_type": "mistral",
            "sliding_window": 4096,
            "max_position_embeddings": 32768,
        },
        "attention over a window of 4,096 tokens",
    ),
    "google-t5/t5-base": (
        {
            "architectures": ["T5ForConditionalGeneration"],
            "model_type": "t5",
            "is_encoder_decoder": True,
        },
        "an encoder",
    ),
    "tiiuae/falcon-7b": (
        {"architectures": ["FalconForCausalLM"], "model_type": "falcon"},
        "FalconForCausalLM is not modelled in this version; modelled are",
    ),
    "a classifier": (
        {"architectures": ["LlamaForSequenceClassification"], "model_type": "llama"},
        "LlamaForSequenceClassification is not modelled in this version; LlamaForCausalLM is",
    ),
}


def write(folder: Path, said: Any, name: str = "config.json") -> Path:
    """Write a file, a mapping as JSON, into a folder that is made if need be; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(said if isinstance(said, str) else json.dumps(said))
    return path
