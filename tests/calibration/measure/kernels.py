"""Torch where there is one, and libraries of kernels that compute what those of a GPU would, slowly."""

from types import SimpleNamespace
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="timing kernels takes torch (extra 'measure')")


#: The lengths and pages of the sequences that were read.
READ: list[tuple[int, list[int]]] = []


def attention(query: Any, keys: Any, values: Any) -> Any:
    """Return attention of [heads, new, d] over [kv_heads, keys, d], causal to the last key, in float32."""
    group = query.shape[0] // keys.shape[0]
    keys, values = (each.float().repeat_interleave(group, 0) for each in (keys, values))
    scores = query.float() @ keys.transpose(1, 2) / query.shape[-1] ** 0.5
    new, old = scores.shape[-2:]
    visible = torch.ones(new, old, dtype=torch.bool).tril(old - new)
    return scores.masked_fill(~visible, float("-inf")).softmax(-1) @ values


def paged(query: Any, cache: tuple[Any, Any], pages: Any, length: int) -> Any:
    """Return decode attention of a sequence [heads, d] over pages [page, kv_heads, d]; keep what it read."""
    READ.append((length, pages.tolist()))
    keys, values = (each[pages.long()].flatten(0, 1)[:length].transpose(0, 1) for each in cache)
    return attention(query[:, None], keys, values)[:, 0]


class Wrapper:
    """FlashInfer's wrapper of batch decode, by its documentation."""

    def __init__(self, workspace: Any, layout: str, use_tensor_cores: bool) -> None:
        assert layout == "NHD"

    def plan(
        self, starts: Any, pages: Any, last: Any, heads: int, kv_heads: int, d: int, page: int, **kinds: Any
    ) -> None:
        self.starts, self.pages, self.last, self.page = starts, pages, last, page
        self.shape, self.kinds = (heads, kv_heads, d), kinds

    def run(self, query: Any, cache: tuple[Any, Any]) -> Any:
        heads, kv_heads, d = self.shape
        assert query.shape[1:] == (heads, d)
        assert cache[0].shape[1:] == (self.page, kv_heads, d)
        assert cache[0].dtype == self.kinds["kv_data_type"]
        assert query.dtype == self.kinds["q_data_type"]
        ends = zip(self.starts[:-1], self.starts[1:], self.last, query, strict=True)
        return torch.stack(
            [
                paged(each, cache, self.pages[start:end], int(end - start - 1) * self.page + int(last))
                for start, end, last, each in ends
            ]
        )


def with_kvcache(
    query: Any, keys: Any, values: Any, *, cache_seqlens: Any, causal: bool, **table: Any
) -> Any:
    """Return what FlashAttention's ``flash_attn_with_kvcache`` does, [batch, 1, heads, d]."""
    (pages,) = table.values()
    assert causal
    return torch.stack(
        [
            paged(each[0], (keys, values), row, int(length))[None]
            for each, row, length in zip(query, pages, cache_seqlens, strict=True)
        ]
    )


def causal(query: Any, keys: Any, values: Any, *, causal: bool) -> Any:
    """Return what FlashAttention's ``flash_attn_func`` does, [batch, new, heads, d]."""
    assert causal
    both = zip(query, keys, values, strict=True)
    return torch.stack([attention(*(part.transpose(0, 1) for part in each)).transpose(0, 1) for each in both])


def fused_add_rmsnorm(values: Any, residual: Any, weight: Any, eps: float) -> None:
    """Add and norm in place, as FlashInfer's kernel of this name does."""
    residual += values
    values.copy_(torch.nn.functional.rms_norm(residual, weight.shape, weight, eps))


def apply_rope_pos_ids_inplace(query: Any, key: Any, positions: Any) -> None:
    """Take what FlashInfer's kernel of this name takes: [tokens, heads, d] each, int32 positions [tokens]."""
    assert query.shape[0] == key.shape[0] == positions.shape[0]
    assert query.shape[2] == key.shape[2]
    assert positions.dtype == torch.int32
    query.neg_()
    key.neg_()


def silu_and_mul(both: Any) -> Any:
    """Return SiLU of the first half times the second."""
    gate, up = both.chunk(2, -1)
    return torch.nn.functional.silu(gate) * up


FLASHINFER = SimpleNamespace(
    BatchDecodeWithPagedKVCacheWrapper=Wrapper,
    norm=SimpleNamespace(fused_add_rmsnorm=fused_add_rmsnorm),
    rope=SimpleNamespace(apply_rope_pos_ids_inplace=apply_rope_pos_ids_inplace),
    activation=SimpleNamespace(silu_and_mul=silu_and_mul),
)
FLASH_ATTENTION = SimpleNamespace(flash_attn_with_kvcache=with_kvcache, flash_attn_func=causal)
