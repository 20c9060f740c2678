"""A calibration profile: the forms of ``kernels/`` with coefficients fitted on one GPU under one engine."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from math import log
from typing import Any, ClassVar

from servesim.check import Problem, field_problems, quantity
from servesim.cost.fitted import FittedStepTime
from servesim.cost.gpu import Gpu
from servesim.cost.kernel_set import ASSUMED_ELEMENTWISE, KernelSet, Ranges, Ring, ranges_of
from servesim.cost.kernels.all_reduce import AllReduce
from servesim.cost.kernels.decode_attention import DecodeAttention
from servesim.cost.kernels.elementwise import Elementwise
from servesim.cost.kernels.gemm import Gemm
from servesim.cost.kernels.prefill_attention import PrefillAttention
from servesim.cost.model import KvCacheDtype, Model
from servesim.cost.overhead import EngineOverhead
from servesim.cost.profile_content import CHIP, FORMS, LINK, content_problems, required
from servesim.cost.step_time import PLAIN, Decoding
from servesim.field_types import field_types

Coefficients = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Profile:
    """The fits of one GPU and engine, as ``conf/calibration/<gpu>-<engine>.yaml`` says them.

    Of each operation: the coefficients of its form (:mod:`servesim.cost.kernels`) by format or size, and in
    ``ranges`` what the fitted rows span; an operation that they leave out is fitted on another engine's
    rows, and extrapolated. ``datasheet`` are the figures that rates are fractions of: on a GPU with other
    figures times scale, and count as extrapolated. ``provenance``, ``errors`` and ``projections`` tell
    where the coefficients are from and how good they are.
    """

    name: str = quantity()
    gpu: str = quantity()
    engine: str = quantity()
    engine_version: str = quantity()
    datasheet: Mapping[str, Any] = quantity()
    gemm: Coefficients = quantity()
    decode_attention: Coefficients = quantity()
    prefill_attention: Coefficients = quantity()
    all_reduce: Coefficients = quantity(factory=dict)
    moe: Coefficients = quantity(factory=dict)
    quantise: Coefficients = quantity(factory=dict)
    ranges: Mapping[str, Any] = quantity(factory=dict)
    provenance: Mapping[str, Any] = quantity(factory=dict)
    errors: Mapping[str, Any] = quantity(factory=dict)
    projections: Mapping[str, Any] = quantity(factory=dict)

    concerns: ClassVar[tuple[str, ...]] = ()  # `problems` looks at whatever has a shape to be looked at

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with the coefficients, the datasheet and the ranges, and what is missing."""
        yield from content_problems(vars(self))

    @cached_property
    def hash(self) -> str:
        """A hash of all that decides times: coefficients, ranges and the datasheet's figures."""
        said = {name: getattr(self, name) for name in (*FORMS, "ranges", "datasheet")}
        return blake2b(json.dumps(said, sort_keys=True).encode(), digest_size=8).hexdigest()

    def __hash__(self) -> int:
        return hash((self.name, self.hash))

    def described(self) -> dict[str, Any]:
        """Return what a summary says of the profile."""
        told = {name: getattr(self, name) for name in ("name", "gpu", "engine", "engine_version")}
        return told | {"hash": self.hash}

    def step_time(
        self,
        model: Model,
        gpu: Gpu,
        tensor_parallel_size: int,
        kv_cache_dtype: KvCacheDtype,
        *,
        max_num_seqs: int,
        max_num_batched_tokens: int,
        overhead: EngineOverhead | None = None,
        each: Decoding = PLAIN,
    ) -> FittedStepTime:
        """Return the step times of one replica of ``tensor_parallel_size`` GPUs."""
        return FittedStepTime(
            model,
            gpu,
            tensor_parallel_size,
            kv_cache_dtype,
            self.kernels(model, gpu, tensor_parallel_size, kv_cache_dtype),
            overhead,
            max_num_seqs=max_num_seqs,
            max_num_batched_tokens=max_num_batched_tokens,
            each=each,
        )

    def distance(self, gpu: Gpu) -> float:
        """Return how far the datasheet of a GPU is from this one's: the sum of log ratios of its figures.

        FP8 counts where both have it.
        """
        pairs = [(self.datasheet[name], getattr(gpu, name)) for name in (*CHIP, LINK)]
        return sum(abs(log(one / other)) for one, other in pairs if one and other)

    def kernels(self, model: Model, gpu: Gpu, gpus: int, kv_cache_dtype: KvCacheDtype) -> KernelSet:
        """Return the kernels of a step.

        A format without a table is scaled from BF16 by bytes and peak; a number of GPUs without one from
        the nearest number.
        """
        weights, kv = model.weights_dtype, "fp8" if kv_cache_dtype == "fp8" else "bf16"
        quantised = weights == "fp8" and gpu.fp8_flops_per_s is not None
        places = {
            "gemm": ("gemm", weights),
            "lm_head": ("gemm", "bf16"),
            "decode_attention": ("decode_attention", kv),
            "prefill_attention": ("prefill_attention", "bf16" if kv == "bf16" else "bf16_kv_fp8"),
            "all_reduce": ("all_reduce", f"gpus_{gpus}"),
            "quantise": ("quantise", self._quantisation),
        }
        return KernelSet(
            gemm=self._gemm(weights),
            head=Gemm(**self.gemm["bf16"]),
            decode=self._decode(kv),
            prefill=self._prefill(kv),
            elementwise=self._elementwise,
            all_reduce=self._all_reduce(gpus),
            quantised=quantised,
            ranges={
                operation: ranges
                for operation, place in places.items()
                if (ranges := self._ranges(gpu, *place)) is not None
            },
        )

    def _gemm(self, dtype: str) -> Gemm:
        if dtype in self.gemm:
            return Gemm(**self.gemm[dtype])
        return Gemm(**{**self.gemm["bf16"], "dtype": dtype})

    def _decode(self, kv_dtype: str) -> DecodeAttention:
        said = self.decode_attention
        return DecodeAttention(**{**said.get(kv_dtype, said["bf16"]), "kv_dtype": kv_dtype})

    def _prefill(self, kv_dtype: str) -> PrefillAttention:
        said = self.prefill_attention
        own = said["bf16"] if kv_dtype == "bf16" else said.get("bf16_kv_fp8", said["bf16"])
        return PrefillAttention(**{**own, "kv_dtype": kv_dtype})

    @property
    def _quantisation(self) -> str:
        """How activations are quantised: with scales of the checkpoint, where there is a table of it."""
        return "static" if "static" in self.quantise else "dynamic"

    @property
    def _elementwise(self) -> Elementwise:
        said = self.quantise.get(self._quantisation)
        return ASSUMED_ELEMENTWISE if said is None else Elementwise(**said)

    def _all_reduce(self, gpus: int) -> AllReduce | Ring:
        """Return the all-reduce of this many GPUs, if need be by the bytes that the nearest number moves.

        One shot reads the message of every other GPU, t - 1 in all; two shots move 2 (t - 1) / t of one.
        """
        fitted = {form.gpus: form for form in (AllReduce(**said) for said in self.all_reduce.values())}
        if gpus in fitted or not fitted or gpus == 1:
            return fitted.get(gpus, Ring(gpus))
        near = min(fitted, key=lambda known: abs(log(known / gpus)))
        return AllReduce(
            gpus=gpus,
            quick_s=fitted[near].quick_s,
            quick_rate=fitted[near].quick_rate * (near - 1) / (gpus - 1),
            steady_s=fitted[near].steady_s,
            steady_rate=fitted[near].steady_rate * (1 - 1 / near) / (1 - 1 / gpus),
        )

    def _ranges(self, gpu: Gpu, operation: str, name: str) -> Ranges | None:
        """Return what an operation's own table spans; None without one, or on another datasheet."""
        figures = (LINK,) if operation == "all_reduce" else CHIP
        here = all(self.datasheet[figure] == getattr(gpu, figure) for figure in figures)
        own = not self.ranges or operation in self.ranges
        if not (here and own) or name not in getattr(self, operation):
            return None
        return ranges_of(self.ranges.get(operation, {}).get(name, {}))


def profile_problems(said: object, path: str) -> Iterator[Problem]:
    """Yield all that keeps what a file says from being a profile."""
    if not isinstance(said, Mapping):
        yield Problem(path, said, "must be a profile: keys with values")
        return
    known = field_types(Profile)
    given = {name: value for name, value in said.items() if name in known}
    found = [Problem(str(name), value, "unknown key") for name, value in said.items() if name not in known]
    found += [Problem(name, None, "is missing") for name in required(Profile) if name not in given]
    found += [*field_problems(Profile, given), *content_problems(given)]
    yield from (problem.under(path) for problem in found)
