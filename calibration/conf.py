"""The GPUs and models of ``conf``, and what it does not say of a GPU."""

from __future__ import annotations

from pathlib import Path

import yaml

from servesim.cost.gpu import Gpu
from servesim.cost.model import Model

CONF = Path(__file__).parents[1] / "conf"

#: Streaming multiprocessors, from NVIDIA's architecture white papers (A100: Ampere, H100 and H200: Hopper,
#: L40S: Ada; RTX PRO 6000 and B200: Blackwell).
MULTIPROCESSORS = {
    "a100-sxm-80gb": 108,
    "h100-sxm": 132,
    "h200-sxm": 132,
    "b200-sxm": 148,
    "l40s": 142,
    "rtx-pro-6000": 188,
}


def gpu_named(name: str) -> Gpu:
    """Return a GPU of ``conf/gpu``."""
    return Gpu(**yaml.safe_load((CONF / "gpu" / f"{name}.yaml").read_text()))


def model_named(name: str) -> Model:
    """Return a model of ``conf/model``."""
    return Model(**yaml.safe_load((CONF / "model" / f"{name}.yaml").read_text()))
