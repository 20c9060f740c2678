"""Measured data that lies beside the repository, where there is any."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def shared_data(*parts: str) -> Path:
    """Return a path below ``../shared/data``; skip the test where it does not exist."""
    path = ROOT.parent.joinpath("shared", "data", *parts)
    if not path.exists():
        pytest.skip(f"needs the measured data {'/'.join(parts)} beside the repository")
    return path
