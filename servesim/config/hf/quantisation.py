"""The dtype of a checkpoint's weights, as its ``quantization_config`` or its ``dtype`` tells it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

#: Weights that share a scale in the int4 that is modelled: see ``servesim.cost.model.WEIGHT_BYTES``.
GROUP = 128

#: Methods whose weights have 8 bits of floating point.
_FP8 = ("fp8", "fbgemm_fp8", "ptpc_fp8")
#: Methods whose weights have so many bits of an integer, in groups.
_INTEGERS = ("gptq", "gptq_marlin", "awq", "awq_marlin", "auto-round", "auto_round")
#: Half precision, and what vLLM runs in half precision when its --dtype is auto (vllm: vllm/config/model.py).
_HALF, _TO_HALF = ("bfloat16", "float16", "half"), ("float32", "float", None)


class Weights(NamedTuple):
    """The dtype of weights as :class:`servesim.cost.model.Model` names it, and what there is to say of it."""

    dtype: str
    notes: tuple[str, ...] = ()


class Unknown(NamedTuple):
    """A format of weights that is not modelled, by its name."""

    name: str


def weights_of(config: Mapping[str, Any], text: Mapping[str, Any]) -> Weights | Unknown:
    """Return the dtype of the weights that a ``config.json`` describes.

    Args:
        config: what the file says.
        text: what it says of the language model: the same, or a part of it.

    """
    said = next((one["quantization_config"] for one in (config, text) if "quantization_config" in one), None)
    if not said:
        return _plain(
            text.get("dtype") or text.get("torch_dtype") or config.get("dtype") or config.get("torch_dtype")
        )
    if not isinstance(said, Mapping):
        return Unknown(repr(said))
    method = str(said.get("quant_method", "without a method"))
    if method in _FP8:
        return Weights("fp8")
    if method in _INTEGERS:
        bits = _first(said, "bits", "w_bit")
        return _integers(method, bits, _first(said, "group_size", "q_group_size"))
    if method == "modelopt":
        return _modelopt(said)
    if method == "compressed-tensors":
        return _compressed(said)
    return Unknown(method)


def method_weights(method: str) -> Weights | Unknown:
    """Return the dtype that a value of vLLM's ``--quantization`` stands for, without a checkpoint to ask."""
    if method in _FP8:
        return Weights("fp8")
    return Weights("int4") if method in (*_INTEGERS, "marlin") else Unknown(method)


def _plain(dtype: Any) -> Weights | Unknown:
    name = dtype.removeprefix("torch.") if isinstance(dtype, str) else dtype
    if name in _HALF:
        return Weights("bf16")
    if name in _TO_HALF:
        return Weights("bf16", (f"weights of dtype {name} run in 16 bits",) if name else ())
    return Unknown(f"dtype {dtype}")


def _integers(method: str, bits: Any, group: Any) -> Weights | Unknown:
    if bits != 4:
        return Unknown(f"{method} with {bits} bits")
    return Weights("int4", tuple(_on_groups(group)))


def _on_groups(group: Any) -> Iterator[str]:
    """Yield what the bytes of weights leave out where groups are of another size."""
    if isinstance(group, int) and group != GROUP:
        size = f"groups of {group}" if group > 0 else "one group per row"
        yield f"int4 weights in {size} are counted as in groups of {GROUP}"


def _modelopt(said: Mapping[str, Any]) -> Weights | Unknown:
    """Read NVIDIA's Model Optimizer, whose keys lie in the mapping or in its ``quantization``."""
    inner = said.get("quantization")
    own: Mapping[str, Any] = inner if isinstance(inner, Mapping) else said
    algorithm = str(own.get("quant_algo"))
    if algorithm not in ("FP8", "FP8_PER_CHANNEL_PER_TOKEN", "FP8_PB_WO"):
        return Unknown(f"modelopt {algorithm}")
    return Weights("fp8", tuple(_on_kv("FP8" in str(own.get("kv_cache_quant_algo")))))


def _compressed(said: Mapping[str, Any]) -> Weights | Unknown:
    """Read compressed-tensors: all groups of layers must have weights of one kind."""
    groups = said.get("config_groups")
    parts = (
        [group.get("weights") for group in groups.values() if isinstance(group, Mapping)]
        if isinstance(groups, Mapping)
        else []
    )
    kinds = {(part.get("type"), part.get("num_bits")) for part in parts if isinstance(part, Mapping)}
    scheme = said.get("kv_cache_scheme")
    kv = tuple(_on_kv(isinstance(scheme, Mapping) and scheme.get("num_bits") == 8))
    if kinds == {("float", 8)}:
        return Weights("fp8", kv)
    if kinds == {("int", 4)}:
        sizes = {part.get("group_size") for part in parts if isinstance(part, Mapping)}
        return Weights("int4", (*kv, *(note for size in sizes for note in _on_groups(size))))
    names = sorted(f"{kind}{bits}" for kind, bits in kinds)
    return Unknown(f"compressed-tensors {' and '.join(names) or said.get('format')}")


def _on_kv(fp8: bool) -> Iterator[str]:
    if fp8:
        yield "the checkpoint has scales for an FP8 KV cache: scheduler.kv_cache_dtype=fp8 uses it"


def _first(said: Mapping[str, Any], *keys: str) -> Any:
    return next((said[key] for key in keys if key in said), None)
