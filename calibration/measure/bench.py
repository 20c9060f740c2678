"""The device that cases run on: random data on it, and which kernel libraries it has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import torch

from calibration.measure import predicted
from calibration.measure.case import Case, UnsupportedError
from calibration.measure.protocol import CPU_CALLS, MOST_CALLS

#: Kernel libraries that are used where they can be imported, and the packages that hold them.
LIBRARIES = {
    "flashinfer": "flashinfer-python",
    "flash_attn_interface": "flash-attn-3",
    "flash_attn": "flash-attn",
    "triton": "triton",
}

DTYPES = {"bf16": torch.bfloat16, "fp8": torch.float8_e4m3fn}


@dataclass(frozen=True)
class Prepared:
    """A case ready to run: calls that differ in their weights, KV or source only.

    ``kernel`` says what runs. ``on_host``: the time is what the host spends on a call. ``capture`` tells
    whether the calls are replayed as a CUDA graph: if they can be (None), always, or never. ``reset`` brings
    back the data before each round, outside the time.
    """

    calls: tuple[Callable[[], object], ...]
    kernel: str
    on_host: bool = False
    capture: bool | None = None
    reset: Callable[[], object] = bool


class Bench:
    """A device, and the data and kernels of cases on it."""

    def __init__(self, device: str) -> None:
        self.device = torch.device(device)
        self.generator = torch.Generator(self.device).manual_seed(0)

    @property
    def is_cpu(self) -> bool:
        """Whether kernels run on the CPU."""
        return self.device.type == "cpu"

    @cached_property
    def cache_bytes(self) -> int:
        """The L2 cache of the GPU."""
        return 0 if self.is_cpu else int(torch.cuda.get_device_properties(self.device).L2_cache_size)

    @cached_property
    def _imports(self) -> dict[str, ModuleType | str]:
        names = [] if self.is_cpu else [name for name in LIBRARIES if find_spec(name)]
        return {name: _imported(name) for name in names}

    @cached_property
    def libraries(self) -> dict[str, ModuleType]:
        """The kernel libraries that can be imported; none on a CPU."""
        return {name: found for name, found in self._imports.items() if not isinstance(found, str)}

    @property
    def unusable(self) -> dict[str, str]:
        """The kernel libraries that are installed and cannot be imported, and why."""
        return {name: why for name, why in self._imports.items() if isinstance(why, str)}

    @property
    def versions(self) -> str:
        """The kernel libraries with their versions."""
        return ", ".join(f"{name} {_version(name, module)}" for name, module in self.libraries.items())

    def copies(self, case: Case) -> int:
        """Return how many buffers of weights, KV or sources the calls of a case go through."""
        if self.is_cpu:
            return CPU_CALLS
        return predicted.copies(predicted.rotated_bytes(case), self.cache_bytes, MOST_CALLS)

    def random(self, *shape: int, dtype: str = "bf16") -> torch.Tensor:
        """Return normal random numbers: a GPU multiplies zeros faster, as it draws less power."""
        values = torch.randn(*shape, dtype=torch.bfloat16, device=self.device, generator=self.generator)
        return values.to(DTYPES[dtype])

    def same(self, call: Callable[[], object]) -> tuple[Callable[[], object], ...]:
        """Return a call as often as calls are timed together, where no buffer needs to be cold."""
        return (call,) * (CPU_CALLS if self.is_cpu else MOST_CALLS)

    def compiled(self, function: Callable[..., Any]) -> tuple[Callable[..., Any], str]:
        """Return an elementwise function as one kernel where Triton is there, and the kernel's name."""
        if "triton" in self.libraries:
            # fullgraph: an error where it would fall back on several kernels
            return torch.compile(function, dynamic=True, fullgraph=True), "triton_torch_compile"
        return function, "torch_eager"

    def need_gpu(self, what: str) -> None:
        """Raise UnsupportedError on a CPU."""
        if self.is_cpu:
            raise UnsupportedError(f"{what}: needs a GPU")

    def need_capability(self, least: tuple[int, int], what: str) -> None:
        """Raise UnsupportedError on a GPU of an earlier compute capability."""
        if not self.is_cpu and (has := torch.cuda.get_device_capability(self.device)) < least:
            raise UnsupportedError(
                f"{what}: needs compute capability {least[0]}.{least[1]}, this is {has[0]}.{has[1]}"
            )

    def is_broken(self) -> bool:
        """Return whether the device answers no more, as after an illegal access to memory."""
        if self.is_cpu:
            return False
        try:
            torch.cuda.synchronize(self.device)
            torch.cuda.empty_cache()
        except RuntimeError:
            return True
        return False


def _imported(name: str) -> ModuleType | str:
    """Return a library, or why it cannot be imported, as where it was built for another torch or CUDA."""
    try:
        return import_module(name)
    except Exception as problem:  # extensions raise what they like
        return f"{type(problem).__name__}: {problem}"


def _version(name: str, module: ModuleType) -> str:
    try:
        return version(LIBRARIES[name])
    except PackageNotFoundError:
        return str(getattr(module, "__version__", "of unknown version"))
