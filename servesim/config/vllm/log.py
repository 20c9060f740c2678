"""What an engine's log says of its memory, in the words of several versions of vLLM."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import ceil, inf, isfinite
from pathlib import Path

from servesim.check import MOST_BYTES, ConfigError, Problem

#: Sequences that colour a terminal, which logs may be full of.
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
#: Whose line it is: "(EngineCore_DP1 pid=12) ", "(EngineCore_1 pid=12) ", "(EngineCore pid=12) ".
_ENGINE = re.compile(r"\((EngineCore(?:_DP)?_?\d*) ")

#: Terms of memory in GiB, and how versions from 0.5 on put them. Where a line says GB, GiB are meant.
_TERMS = {
    "weights_gib": r"(?:Loading model weights|Model loading) took (\S+?) ?Gi?B"
    r"|model weights take (\S+?) ?GiB|weights memory: (\S+?) ?GiB",
    "activations_gib": r"activation peak memory takes (\S+?) ?GiB|torch peak memory increase: (\S+?) ?GiB",
    "runtime_gib": r"non_torch_memory takes (\S+?) ?GiB|non-torch forward increase memory: (\S+?) ?GiB",
    "graphs_gib": r"Estimated CUDA graph memory: (\S+?) ?GiB",
    "kv_gib": r"Available KV cache memory: (\S+?) ?GiB|reserved for KV Cache is (\S+?) ?GiB"
    r"|kv_cache_size=(\S+?) ?GiB",
    "gpu_gib": r"total_gpu_memory \((\S+?) ?GiB\)|total_gpu_memory=(\S+?) ?GiB",
    "blocks": r"# (?:GPU|cuda) blocks: ([\d,]+)",
    "tokens": r"GPU KV cache size: ([\d,]+) tokens",
    "max_model_len": r"Maximum concurrency for ([\d,]+) tokens per request",
    "concurrency": r"tokens per request: (\S+?)x",
    "tensor_parallel_size": r"LLM engine \(.*\btensor_parallel_size=(\d+)",
    "overridden": r"Overriding num_gpu_blocks=([1-9]\d*) with",
}
_PATTERNS = {name: re.compile(pattern) for name, pattern in _TERMS.items()}
_WORDS = ("GiB", " GB", "blocks", "tokens", "LLM engine")
_VERSION = re.compile(r"LLM engine \(v?([^)\s]+)\)")
#: Of these the largest decides where several processes tell: the rest is what is left.
_LARGEST = frozenset({"weights_gib", "activations_gib", "runtime_gib", "graphs_gib", "tensor_parallel_size"})
#: The least of figures that the comparison rests on: a line that says less cannot be read.
_LEAST = {"kv_gib": 0, "blocks": 1, "tokens": 1, "max_model_len": 1, "tensor_parallel_size": 1}


@dataclass(frozen=True)
class EngineLog:
    """Terms of the memory of one GPU in GiB, and what was left for KV; None where the log does not say.

    Of several engines, or processes of one, it is the least room that is told; ``engines`` tells how many
    engines there are, ``unread`` what it says that no engine can have.
    """

    weights_gib: float | None = None
    activations_gib: float | None = None
    runtime_gib: float | None = None
    graphs_gib: float | None = None
    kv_gib: float | None = None
    gpu_gib: float | None = None
    blocks: float | None = None
    tokens: float | None = None
    max_model_len: float | None = None
    concurrency: float | None = None
    tensor_parallel_size: float | None = None
    overridden: float | None = None
    version: str | None = None
    engines: int = 1
    unread: tuple[str, ...] = field(default=(), compare=False)

    def kv_blocks(self, block_size: int) -> int | None:
        """Return how many KV blocks there are, of the size that the engine has.

        Versions that tell tokens tell those of whole blocks, or (later) the maximum concurrency times
        ``max_model_len``, cut to a whole number, in which the last block of each sequence need not be full.
        """
        if self.blocks is not None:
            return int(self.blocks)
        if self.tokens is None:
            return None
        if self.tokens % block_size == 0 or not self.max_model_len:
            return int(self.tokens // block_size)
        return ceil(self.tokens * ceil(self.max_model_len / block_size) / self.max_model_len)


def read_log(path: Path) -> EngineLog:
    """Return what a log says.

    Raises:
        ConfigError: it cannot be read, says what cannot be, or nothing of memory.
    """
    try:
        with path.expanduser().open(encoding="utf-8", errors="replace") as lines:
            found = of_lines(lines)
    except OSError as error:
        raise ConfigError([Problem("--vllm-log", str(path), error.strerror or str(error))]) from error
    if found.unread:
        message = "says what no engine can have"
        raise ConfigError([Problem(f"--vllm-log {path}", said, message) for said in found.unread])
    if found.kv_gib is None and found.kv_blocks(1) is None:
        message = 'says nothing of a KV cache, such as "GPU KV cache size: 123,456 tokens"'
        raise ConfigError([Problem("--vllm-log", str(path), message)])
    return found


def of_lines(lines: Iterable[str]) -> EngineLog:
    """Return what the lines of a log say."""
    values: dict[str, list[float]] = {}
    engines, unread, version = [], list[str](), None
    for line in lines:
        if not any(word in line for word in _WORDS):
            continue
        plain = _COLOURS.sub("", line)
        for name, pattern in _PATTERNS.items():
            match = pattern.search(plain)
            value = _number(name, match) if match else None
            if match and value is None and name in _LEAST:
                unread.append(match[0])
            if value is not None:
                values.setdefault(name, []).append(value)
                if name in ("tokens", "blocks"):
                    engine = _ENGINE.search(plain)
                    engines.append(engine[1] if engine else "")
        match = _VERSION.search(plain)
        version = match[1] if match else version
    least = {name: (max if name in _LARGEST else min)(each) for name, each in values.items()}
    return EngineLog(**least, version=version, engines=max(len(set(engines)), 1), unread=tuple(unread))


def _number(name: str, match: re.Match[str]) -> float | None:
    """Return a figure; None where it is none, or none that an engine can have."""
    text = next(group for group in match.groups() if group is not None)
    try:
        value = float(text.replace(",", "").rstrip(";."))
    except ValueError:
        return None
    return value if isfinite(value) and _LEAST.get(name, -inf) <= value <= MOST_BYTES else None
