"""Making a composed mapping whole: from flags of an engine, a model's own file, and few figures of a GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from servesim.check import Problem
from servesim.config.gpu_figures import lay_gpus
from servesim.config.hf.model import DRAFT_MODEL, lay_model
from servesim.config.layers import Completed, Layers
from servesim.config.nested import value_at
from servesim.config.profiles import with_profiles
from servesim.config.vllm.engine_args import EngineArgs

#: Where keys of speculative decoding lie.
_DRAFTS = "scheduler.speculation"


def completed(
    values: Mapping[str, Any], typed: Set[str], own_gpus: Set[str], folders: Sequence[Path]
) -> Completed:
    """Return a composed mapping with all that its keys stand for, and the profiles found.

    Args:
        values: the mapping.
        typed: keys that were typed: their values win over all that files and flags say.
        own_gpus: places of pools' GPUs that were chosen by name.
        folders: where options and profiles are looked for.

    """
    layers = Layers(values, typed)
    engine_args = EngineArgs(layers, folders)
    engine_args.lay_model()
    lay_model(layers)
    engine_args.lay_rest()
    lay_model(layers, DRAFT_MODEL)
    _accept_once(layers)
    lay_gpus(layers, own_gpus)
    layers.values = with_profiles(layers.values, folders)
    return layers.whole()


def _accept_once(layers: Layers) -> None:
    """Refuse a typed acceptance beside a typed length that takes its place."""
    rates, mean = (f"{_DRAFTS}.{name}" for name in ("acceptance", "mean_accepted_length"))
    values = [value_at(layers.values, key.split(".")) for key in (rates, mean)]
    if {rates, mean} <= layers.typed and None not in values:
        layers.problems.append(Problem(rates, values[0], f"{mean} takes its place: give one of the two"))
