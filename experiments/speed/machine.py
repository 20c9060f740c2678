"""On what the figures were measured."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import servesim

_PACKAGES = ("numpy", "pyarrow", "simpy", "sched-sim")


def describe() -> str:
    """Return the machine, how busy it is, Python, and the versions of what matters, in two lines."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    packages = [f"{name} {found}" for name in _PACKAGES if (found := installed(name))]
    return (
        f"{_processor()}, {os.cpu_count()} CPUs, load average {os.getloadavg()[0]:.1f} at the start\n"
        f"{', '.join([python, f'servesim {servesim.__version__}', *packages])}"
    )


def installed(package: str) -> str | None:
    """Return the version of an installed package, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    """Return the name of the processor; Linux has the useful one in /proc."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text(encoding="utf-8").splitlines() if information.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
