"""Which shipped option a name on Hugging Face is, and with weights of which dtype."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

#: By the name without owner and endings. Llama 3.3 70B has the shape of Llama 3.1 70B.
_OPTIONS = {
    "llama-3.1-8b": "llama3.1-8b",
    "llama-3.1-70b": "llama3.1-70b",
    "llama-3.3-70b": "llama3.1-70b",
    "llama-3.1-405b": "llama3.1-405b",
    "llama-2-7b": "llama2-7b",
    "llama-2-70b": "llama2-70b",
    "codellama-34b": "codellama-34b",
    "qwen3-32b": "qwen3-32b",
}
_NAME = re.compile(
    rf"(?:meta-)?(?P<base>{'|'.join(map(re.escape, _OPTIONS))})(?:-instruct|-chat|-python)?(?:-hf)?"
    r"(?P<fp8>-fp8(?:-dynamic)?)?(?P<int4>-(?:awq|gptq)(?:-int4)?|-quantized\.w4a16)?"
)


class Known(NamedTuple):
    """An option of the group ``model``, and the dtype of the weights."""

    option: str
    weights_dtype: str


def known_model(name: str) -> Known | None:
    """Return the shipped option that ``owner/name`` is, such as ``RedHatAI/Llama-3.3-70B-Instruct-FP8``."""
    match = _NAME.fullmatch(name.rstrip("/").rpartition("/")[2].lower())
    if match is None:
        return None
    dtype = "fp8" if match["fp8"] else "int4" if match["int4"] else "bf16"
    return Known(_OPTIONS[match["base"]], dtype)


def option_of(group: str, name: str, folders: Sequence[Path]) -> dict[str, Any]:
    """Return what the file of an option says, on top of the options of its group that it builds on."""
    path = next(path for folder in folders if (path := folder / group / f"{name}.yaml").is_file())
    said = dict(yaml.safe_load(path.read_text(encoding="utf-8")))
    below: dict[str, Any] = {}
    for base in said.pop("defaults", []):
        if isinstance(base, str) and base != "_self_":
            below |= option_of(group, base, folders)
    return below | said
