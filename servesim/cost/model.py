"""A dense decoder-only transformer: parameters, weight bytes and KV bytes, counted from its config."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Literal, NamedTuple

from servesim.check import Problem, quantity
from servesim.words import listed

KvCacheDtype = Literal["auto", "bf16", "fp8"]

#: Bytes of one weight. int4 as AWQ and GPTQ store it in groups of 128: 4 bits, and per group a 16-bit scale
#: and a 4-bit zero point (Lin et al., "AWQ", arXiv:2306.00978; Frantar et al., "GPTQ", arXiv:2210.17323).
#: FP8 scales, one per tensor or per channel, are too few to count.
WEIGHT_BYTES = {"bf16": 2.0, "fp8": 1.0, "int4": (4 + (16 + 4) / 128) / 8}
KV_BYTES = {"auto": 2, "bf16": 2, "fp8": 1}
BF16_BYTES = 2

#: vLLM pads the vocabulary to a multiple of 64 before it splits it (vllm: vocab_parallel_embedding.py).
VOCAB_PADDING = 64

#: A hundred times the largest models there are: products of these numbers stay in 64 bits.
MOST_WIDTH, MOST_LAYERS, MOST_POSITIONS = 10**7, 10**4, 10**9


class Linear(NamedTuple):
    """The part of one linear layer that one GPU holds: ``outputs`` x ``inputs`` weights."""

    name: str
    outputs: int
    inputs: int

    @property
    def parameters(self) -> int:
        """Number of weights on this GPU."""
        return self.outputs * self.inputs


@dataclass(frozen=True)
class Model:
    """A transformer by the fields of its Hugging Face ``config.json``, plus the dtype of its weights.

    Grouped-query attention, gated MLP, RMS norms: the Llama family and its kin. ``attention_bias`` means
    biases on the query, key and value projections; ``qk_norm`` means one norm each over the heads of
    query and key (Qwen3). Under fp8 and int4 the embedding, the LM head, norms and biases stay in BF16,
    as in published checkpoints. ``hf_config`` is the path of that file, where the fields were read from one.
    """

    name: str = quantity()
    hidden_size: int = quantity(at_least=1, at_most=MOST_WIDTH)
    intermediate_size: int = quantity(at_least=1, at_most=MOST_WIDTH)
    num_hidden_layers: int = quantity("layers", at_least=1, at_most=MOST_LAYERS)
    num_attention_heads: int = quantity("heads", at_least=1, at_most=MOST_WIDTH)
    num_key_value_heads: int = quantity("heads", at_least=1, at_most=MOST_WIDTH)
    head_dim: int = quantity(at_least=1, at_most=MOST_WIDTH)
    vocab_size: int = quantity("tokens", at_least=1, at_most=MOST_WIDTH)
    max_position_embeddings: int = quantity("tokens", at_least=1, at_most=MOST_POSITIONS)
    tie_word_embeddings: bool = quantity(default=False)
    attention_bias: bool = quantity(default=False)
    qk_norm: bool = quantity(default=False)
    weights_dtype: Literal["bf16", "fp8", "int4"] = quantity(default="bf16")
    hf_config: str | None = quantity(default=None)

    def problems(self) -> Iterator[Problem]:
        """Yield a problem where the query heads do not form whole groups."""
        if self.num_attention_heads % self.num_key_value_heads:
            yield Problem(
                "num_key_value_heads",
                self.num_key_value_heads,
                f"must divide num_attention_heads = {self.num_attention_heads}",
            )

    def tensor_parallel_problems(self, size: int) -> Iterator[Problem]:
        """Yield what keeps this model from being split over ``size`` GPUs, all of it as one problem."""
        if parts := self.indivisible(size):
            message = f"must divide {listed(parts, 'and')} of {self.name}"
            yield Problem("tensor_parallel_size", size, message)

    def indivisible(self, size: int) -> list[str]:
        """Return the parts of this model that cannot be split over ``size`` GPUs, in words.

        Query heads, MLP columns and the padded vocabulary must split evenly; KV heads must split evenly or
        be replicated evenly.
        """
        kv_heads, vocab = self.num_key_value_heads, ceil(self.vocab_size / VOCAB_PADDING) * VOCAB_PADDING
        heads = f"the {kv_heads} KV heads (or be a multiple of {kv_heads})"
        parts = {
            f"the {self.num_attention_heads} query heads": self.num_attention_heads % size,
            heads: kv_heads % size and size % kv_heads,
            f"the intermediate size {self.intermediate_size}": self.intermediate_size % size,
            f"the padded vocabulary {vocab}": vocab % size,
        }
        return [part for part, rest in parts.items() if rest]

    # ---- parameters

    @property
    def parameters(self) -> int:
        """Number of parameters, embedding and LM head included."""
        layer = sum(linear.parameters for linear in self.linears()) + self._small_layer_parameters()
        return self.num_hidden_layers * layer + self.hidden_size + self._vocab_matrices * self.head_parameters

    @property
    def head_parameters(self) -> int:
        """Number of parameters of the LM head, and of the embedding."""
        return self.vocab_size * self.hidden_size

    def linears(self, tensor_parallel_size: int = 1) -> tuple[Linear, ...]:
        """Return the four linear layers of one decoder layer as one GPU holds them.

        Query, key and value are one matrix, gate and up another, as engines fuse them. Megatron split
        (Shoeybi et al., arXiv:1909.08053): the first of each pair by outputs, the second by inputs.
        """
        query = self.num_attention_heads * self.head_dim // tensor_parallel_size
        key_value = 2 * self.kv_heads_per_gpu(tensor_parallel_size) * self.head_dim
        mlp = self.intermediate_size // tensor_parallel_size
        return (
            Linear("qkv", query + key_value, self.hidden_size),
            Linear("o", self.hidden_size, query),
            Linear("gate_up", 2 * mlp, self.hidden_size),
            Linear("down", self.hidden_size, mlp),
        )

    def kv_heads_per_gpu(self, tensor_parallel_size: int) -> int:
        """Return how many KV heads one GPU holds: replicated once there are more GPUs than heads."""
        return max(self.num_key_value_heads // tensor_parallel_size, 1)

    @property
    def _vocab_matrices(self) -> int:
        return 1 if self.tie_word_embeddings else 2

    def _small_layer_parameters(self, tensor_parallel_size: int = 1) -> int:
        """Return the norms and biases of one layer on one GPU; norms are on every GPU."""
        norms = 2 * self.hidden_size + (2 * self.head_dim if self.qk_norm else 0)
        bias = self.linears(tensor_parallel_size)[0].outputs if self.attention_bias else 0
        return norms + bias

    # ---- bytes

    def linear_bytes(self, tensor_parallel_size: int = 1) -> float:
        """Return the bytes of the linear layers of all decoder layers, scales included, on one GPU."""
        layer = sum(linear.parameters for linear in self.linears(tensor_parallel_size))
        return self.num_hidden_layers * layer * WEIGHT_BYTES[self.weights_dtype]

    def weight_bytes(self, tensor_parallel_size: int = 1) -> int:
        """Return the bytes of all weights that one GPU holds."""
        layers = self.num_hidden_layers * self._small_layer_parameters(tensor_parallel_size)
        vocab = self._vocab_matrices * self.head_parameters / tensor_parallel_size
        rest = (layers + vocab + self.hidden_size) * BF16_BYTES
        return ceil(self.linear_bytes(tensor_parallel_size) + rest)

    def kv_bytes_per_token(self, kv_cache_dtype: KvCacheDtype = "auto", tensor_parallel_size: int = 1) -> int:
        """Return the bytes that keys and values of one token take on one GPU, over all layers.

        2 (key and value) x layers x KV heads on the GPU x head_dim x bytes per element; ``auto`` is BF16.
        """
        heads = self.kv_heads_per_gpu(tensor_parallel_size)
        return 2 * self.num_hidden_layers * heads * self.head_dim * KV_BYTES[kv_cache_dtype]
