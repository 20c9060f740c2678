"""The package of kernel timings: a small made one, and the real one where it is installed."""

from pathlib import Path

import pandas as pd
import pytest

from calibration.sources.tidy import SourceError
from calibration.sources.wheel import Wheel


def made(root: Path, **tables: list[dict[str, object]]) -> Wheel:
    """Write tables of the H100 by ``<operation>__<engine>__<version>__<name>``."""
    for name, rows in tables.items():
        path = root.joinpath("h100_sxm", *name.replace("v0240", "0.24.0").split("__")).with_suffix(".parquet")
        path.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame([{"framework": "VLLM", "version": "0.24.0", **row} for row in rows]).to_parquet(path)
    return Wheel(root, "0")


def installed() -> Wheel:
    """Return the installed package; skip the test where there is none."""
    try:
        return Wheel.installed()
    except SourceError as missing:
        pytest.skip(str(missing))
