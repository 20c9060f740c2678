"""What a file says of the server that was measured: tensor parallelism and GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from servesim.validate.readers.problems import as_number
from servesim.validate.readers.spelling import POINTS, plain

_KEYS = {
    "tensor_parallel_size": POINTS["tp"],
    "num_gpus": ("num_gpus", "gpus", "gpu_count", "number_of_gpus", "n_gpus"),
}


def hardware(said: Mapping[str, Any]) -> dict[str, int | None]:
    """Return GPUs of an engine and of the server, of keys or columns in several spellings; None: not said."""
    names = {plain(name)[0]: value for name, value in said.items()}
    return {
        meaning: next((int(number) for key in keys if (number := _whole(names.get(key)))), None)
        for meaning, keys in _KEYS.items()
    }


def _whole(value: Any) -> float | None:
    number = as_number(value)
    return number if number is not None and number >= 1 and number == number // 1 else None
