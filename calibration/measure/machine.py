"""The machine that rows are timed on: what has to agree for rows to stand in one table."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, fields
from pathlib import Path
from time import monotonic

import torch

from calibration.measure.bench import Bench

#: The GPUs of ``conf/gpu``, by the whole name that the driver gives them. Others of the same family (PCIe,
#: NVL, MIG slices, Max-Q) have other clocks, memory or power, and are not taken for these.
GPUS = {
    "NVIDIA A100-SXM4-80GB": "a100-sxm-80gb",
    "NVIDIA H100 80GB HBM3": "h100-sxm",
    "NVIDIA H200": "h200-sxm",
    "NVIDIA B200": "b200-sxm",
    "NVIDIA L40S": "l40s",
    "NVIDIA RTX PRO 6000 Blackwell Server Edition": "rtx-pro-6000",
}

#: The name of a CPU in tables: no GPU's.
CPU = "cpu"

#: The engine that tables of this runner name, and profiles fitted to them.
ENGINE = "torch"

#: Clocks are read at most so often.
CLOCKS_EVERY_S = 5.0

SMI_TIMEOUT_S = 10


@dataclass(frozen=True)
class Machine:
    """What a table's columns say of the machine; rows of which any of these differ are of another machine.

    ``gpu`` is the name in ``conf/gpu``, the driver's name in small letters for a GPU without one, or ``cpu``.
    """

    gpu: str
    gpu_name: str
    driver: str
    cuda: str
    engine: str
    engine_version: str
    libraries: str

    @classmethod
    def of(cls, bench: Bench) -> Machine:
        """Return the machine of a bench."""
        if bench.is_cpu:
            return cls(CPU, _processor(), "", "", ENGINE, torch.__version__, "")
        name = torch.cuda.get_device_name(bench.device)
        driver = _smi(bench, "driver_version") or ["unknown"]
        cuda = f"{torch.version.cuda or torch.version.hip}"
        return cls(gpu_of(name), name, driver[0], cuda, ENGINE, torch.__version__, bench.versions)

    @classmethod
    def columns(cls) -> list[str]:
        """Return the names of its columns."""
        return [each.name for each in fields(cls)]

    def __str__(self) -> str:
        software = [
            f"torch {self.engine_version}",
            f"CUDA {self.cuda}",
            f"driver {self.driver}",
            self.libraries,
        ]
        return ", ".join([self.gpu_name, *(software[:1] if self.gpu == CPU else filter(None, software))])


class Clocks:
    """The GPU's clocks in MHz (SM and memory) and power limit (W), read now and then; none on a CPU."""

    NAMES = ("sm_clock_mhz", "memory_clock_mhz", "power_limit_w")

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self._read_at = -CLOCKS_EVERY_S
        self._values: dict[str, float | None] = dict.fromkeys(self.NAMES)

    def now(self) -> dict[str, float | None]:
        """Return the latest reading; null what the driver does not tell."""
        if not self.bench.is_cpu and monotonic() - self._read_at >= CLOCKS_EVERY_S:
            told = _smi(self.bench, "clocks.sm,clocks.mem,power.limit")
            self._values = dict(zip(self.NAMES, map(_number, told or [""] * len(self.NAMES)), strict=True))
            self._read_at = monotonic()
        return self._values


def gpu_of(name: str) -> str:
    """Return the name of a GPU in ``conf/gpu``, or the driver's name in small letters and hyphens."""
    return GPUS.get(name) or re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _smi(bench: Bench, query: str) -> list[str] | None:
    """Return what ``nvidia-smi`` tells of the bench's GPU; None where it cannot."""
    uuid = getattr(torch.cuda.get_device_properties(bench.device), "uuid", None)
    command = ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits"]
    chosen = [] if uuid is None else ["-i", f"GPU-{uuid}"]
    try:
        told = subprocess.run(
            [*command, *chosen], capture_output=True, text=True, timeout=SMI_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    lines = told.stdout.strip().splitlines()
    return [value.strip() for value in lines[0].split(",")] if lines else None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _processor() -> str:
    """Return the CPU's model as Linux tells it."""
    path = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*:\s*(.+)$", path.read_text(), re.MULTILINE) if path.exists() else None
    return f"CPU ({found[1]})" if found else "CPU"
