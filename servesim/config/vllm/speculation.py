"""What ``--speculative-config`` means here: an option of ``scheduler/speculation``, some keys changed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from servesim.config.vllm.models import known_model, option_of
from servesim.words import listed

_GROUP = "scheduler/speculation"
_METHODS = {
    "ngram": "ngram",
    "draft_model": "draft_model",
    "eagle": "eagle",
    "eagle3": "eagle3",
    "mtp": "mtp",
}


def speculation_of(value: Any, folders: Sequence[Path]) -> dict[str, Any]:
    """Return the keys of ``scheduler.speculation`` that a speculative configuration stands for.

    vLLM names models of its own kinds of multi-token prediction (``deepseek_mtp``), and takes a model without
    a method for a draft model. What is not said is as the option has it, the acceptance above all.

    Raises:
        ValueError: it is not one, or of a method that is not modelled.
    """
    said = _read(value)
    method = str(said.get("method") or ("draft_model" if "model" in said else ""))
    option = "mtp" if method.endswith("_mtp") else method
    if option not in _METHODS:
        message = f"method {method} is not modelled in this version" if method else "needs a method"
        raise ValueError(f"{message}; modelled are {listed(_METHODS, 'and')}")
    keys = option_of(_GROUP, option, folders)
    if option == "draft_model":
        keys["model"] = _model(str(said.get("model")), folders)
    if "num_speculative_tokens" in said:
        keys["num_speculative_tokens"] = said["num_speculative_tokens"]
    return keys


def _read(value: Any) -> Mapping[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = None
    if not isinstance(value, Mapping):
        raise ValueError('must be JSON, such as {"method": "ngram", "num_speculative_tokens": 4}')
    return value


def _model(name: str, folders: Sequence[Path]) -> dict[str, Any]:
    """Return the draft model that a name stands for."""
    known = known_model(name)
    if known is None:
        where = "choose scheduler/speculation=draft_model and scheduler.speculation.model=NAME"
        raise ValueError(f"model {name} is no model that ships: {where}")
    return {**option_of("model", known.option, folders), "weights_dtype": known.weights_dtype}
