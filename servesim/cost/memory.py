"""What one GPU's memory is spent on, and how many KV blocks are left."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import floor
from typing import Any

from servesim.cost.gpu import Gpu
from servesim.cost.model import BF16_BYTES, KvCacheDtype, Model
from servesim.cost.speculation import Speculation

GIB = 2**30

#: Bytes per logit that sampling holds at its peak: BF16 logits (2), FP32 logits (4), probabilities (4) and
#: the exponential noise that divides them (4), as vLLM samples (vllm/v1/sample/ops/topk_topp_sampler.py).
SAMPLER_BYTES_PER_LOGIT = 2 + 4 + 4 + 4


@dataclass(frozen=True)
class MemorySheet:
    """The memory of one GPU as a sum: all in bytes, ``kv_bytes`` being what is left.

    ``kv_bytes`` is negative where the model does not fit. ``blocks`` is what the engine uses: what fits
    in ``kv_bytes``, or the number given in its place (``overridden``). Where a model drafts, its weights are
    a term of their own, and a block holds its KV beside the target's: ``kv_bytes_per_token`` is both's.
    """

    gpu_bytes: int
    gpu_memory_utilization: float
    weights_bytes: int
    activation_bytes: int
    runtime_bytes: int
    kv_bytes: int
    kv_bytes_per_token: int
    block_size: int
    blocks: int
    overridden: bool
    draft_weights_bytes: int = 0

    @property
    def reserved_bytes(self) -> int:
        """The memory that ``gpu_memory_utilization`` keeps out of the engine's hands."""
        return self.gpu_bytes - floor(self.gpu_bytes * self.gpu_memory_utilization)

    @property
    def block_bytes(self) -> int:
        """The bytes of a KV block, as far as this GPU holds it."""
        return self.block_size * self.kv_bytes_per_token

    @property
    def fits(self) -> bool:
        """Whether weights, activations and runtime leave room for one KV block (overridden or not)."""
        return self.kv_bytes >= self.block_bytes

    @property
    def kv_tokens(self) -> int:
        """How many tokens the blocks hold."""
        return self.blocks * self.block_size

    def concurrency(self, tokens: int) -> float:
        """Return how many sequences of so many tokens the blocks hold at once, in whole blocks each."""
        return self.blocks / -(-tokens // self.block_size)

    def lines(self) -> list[tuple[str, int]]:
        """Return the sheet as a sum: (label, signed bytes), the last line being the total of the others."""
        draft = [("weights of the draft", -self.draft_weights_bytes)] if self.draft_weights_bytes else []
        return [
            ("GPU memory (driver)", self.gpu_bytes),
            (f"beyond gpu_memory_utilization {self.gpu_memory_utilization:g}", -self.reserved_bytes),
            ("weights", -self.weights_bytes),
            *draft,
            ("activations", -self.activation_bytes),
            ("runtime (CUDA, NCCL)", -self.runtime_bytes),
            ("KV cache", self.kv_bytes),
        ]

    def does_not_fit(self, model: str, gpus: int, fits: int | None) -> str:
        """Say that a model does not fit on so many GPUs, by this sum, and how many GPUs do hold it."""
        more = "no number of GPUs of a node fits" if fits is None else f"tensor_parallel_size={fits} fits"
        rows = "".join(f"\n      {size / 1e9:>10.2f} GB  {label}" for label, size in self.lines())
        return (
            f"{model} does not fit on {gpus} GPU(s) a replica; on each of them:{rows}\n"
            f"      ({more}; else fewer bits per weight, or ignore_capacity=true for a what-if)"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, and whether it fits, as plain values."""
        return asdict(self) | {"fits": self.fits}


def memory_sheet(
    model: Model,
    gpu: Gpu,
    tensor_parallel_size: int,
    *,
    gpu_memory_utilization: float,
    kv_cache_dtype: KvCacheDtype,
    block_size: int,
    max_num_seqs: int,
    max_num_batched_tokens: int,
    num_gpu_blocks_override: int | None = None,
    runtime_bytes: int | None = None,
    speculation: Speculation | None = None,
) -> MemorySheet:
    """Return the memory sheet of one GPU of a replica: what is left for KV after all else.

    KV = GPU memory x ``gpu_memory_utilization`` - weights - activations - runtime, as vLLM's memory
    profiling has it; the weights of what drafts (``speculation``) count among them.
    ``num_gpu_blocks_override`` replaces the resulting number of blocks; ``runtime_bytes`` null means
    :func:`default_runtime_bytes`.
    """
    weights = model.weight_bytes(tensor_parallel_size)
    activations = activation_bytes(
        model, tensor_parallel_size, max_num_seqs=max_num_seqs, max_num_batched_tokens=max_num_batched_tokens
    )
    runtime = default_runtime_bytes(tensor_parallel_size) if runtime_bytes is None else runtime_bytes
    usable = floor(gpu.memory_bytes * gpu_memory_utilization)
    draft_weights = 0 if speculation is None else speculation.weight_bytes(model, tensor_parallel_size)
    kv_bytes = usable - weights - draft_weights - activations - runtime
    per_token = kv_bytes_per_token(model, speculation, kv_cache_dtype, tensor_parallel_size)
    fitting = max(kv_bytes // (block_size * per_token), 0)
    return MemorySheet(
        gpu_bytes=gpu.memory_bytes,
        gpu_memory_utilization=gpu_memory_utilization,
        weights_bytes=weights,
        activation_bytes=activations,
        runtime_bytes=runtime,
        kv_bytes=kv_bytes,
        kv_bytes_per_token=per_token,
        block_size=block_size,
        blocks=fitting if num_gpu_blocks_override is None else num_gpu_blocks_override,
        overridden=num_gpu_blocks_override is not None,
        draft_weights_bytes=draft_weights,
    )


def kv_bytes_per_token(
    model: Model, speculation: Speculation | None, dtype: KvCacheDtype, tensor_parallel_size: int = 1
) -> int:
    """Return the bytes of KV that one token takes on one GPU, in the model and in what drafts for it."""
    draft = None if speculation is None else speculation.draft(model)
    models = [model] if draft is None else [model, draft]
    return sum(each.kv_bytes_per_token(dtype, tensor_parallel_size) for each in models)


def activation_bytes(
    model: Model, tensor_parallel_size: int, *, max_num_seqs: int, max_num_batched_tokens: int
) -> int:
    """Return the peak of PyTorch's allocations in a forward pass of the largest batch, on one GPU.

    BF16 residual and hidden state of every token, and on top of them the larger of
    - the widest layer: gate, up and their product, or query, key, value and the attention's output,
      each split over the GPUs;
    - sampling, which needs the whole vocabulary on every GPU: 14 bytes per logit of ``max_num_seqs`` rows.

    vLLM 0.19.0 logs ("torch peak memory increase", max_num_batched_tokens 8192, max_num_seqs 1024, H100;
    llm-d-incubation/llm-d-planner, accuracy/accuracy_report.md) are met within 4% wherever sampling is the
    larger term: Llama-3.1-8B 1.89 GiB at TP 1, 2 and 4, Llama-3.3-70B FP8 1.96 GiB, Qwen3-14B 2.23 GiB.
    """
    rows = min(max_num_seqs, max_num_batched_tokens)
    qkv, o, gate_up, down = model.linears(tensor_parallel_size)
    widest = max(gate_up.outputs + down.inputs, qkv.outputs + o.inputs)
    stream = 2 * max_num_batched_tokens * model.hidden_size * BF16_BYTES
    layer = max_num_batched_tokens * widest * BF16_BYTES
    sampling = rows * model.vocab_size * SAMPLER_BYTES_PER_LOGIT
    return stream + max(layer, sampling)


def default_runtime_bytes(tensor_parallel_size: int) -> int:
    """Return what the engine allocates outside PyTorch: 0.25 GiB alone, 2.1 GiB beside other GPUs.

    Kernels' workspaces, and with tensor parallelism the buffers of NCCL and of the custom all-reduce.
    vLLM 0.19.0 on H100 logs ("non-torch forward increase memory"; source as above) 0.24 to 0.27 GiB at
    TP 1, 2.06 to 2.10 GiB at TP 2, 2.13 to 2.21 GiB at TP 4. CUDA graphs (0.5 to 1.9 GiB in the same logs)
    are captured after the KV cache has been sized and live beyond ``gpu_memory_utilization``; vLLM counts
    them from 0.21 on: give a larger ``runtime_bytes`` for that.
    """
    return round((0.25 if tensor_parallel_size == 1 else 2.1) * GIB)
