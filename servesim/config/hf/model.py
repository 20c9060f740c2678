"""A model's own file in place of an option: ``model.hf_config=PATH``, or that of a draft model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from servesim.check import Problem
from servesim.config.hf.families import FAMILIES, Family, unmodelled
from servesim.config.hf.quantisation import Unknown, weights_of
from servesim.config.layers import Layers
from servesim.config.nested import value_at
from servesim.words import listed

MODEL, DRAFT_MODEL = "model", "scheduler.speculation.model"
KEY = f"{MODEL}.hf_config"
FILE, QUANTISATION_FILE = "config.json", "hf_quant_config.json"

#: Where the file of a model of several kinds of input describes the part that reads and writes text.
_TEXT = ("text_config", "llm_config")
#: Fields that are read as they stand.
_AS_THEY_STAND = (
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "vocab_size",
)
#: What follows from which fields, where a file leaves it out.
_SOURCES = {
    "head_dim": ("hidden_size", "num_attention_heads"),
    "num_key_value_heads": ("num_attention_heads",),
}


class Described(NamedTuple):
    """What a file says: the fields of a model, what to note, and what is wrong."""

    fields: dict[str, Any]
    notes: list[str]
    problems: list[str]


def lay_model(layers: Layers, place: str = MODEL) -> None:
    """Lay what the file behind ``hf_config`` of a model says over the option that was chosen in its place."""
    key, model = f"{place}.hf_config", value_at(layers.values, place.split("."))
    given = model.get("hf_config") if isinstance(model, Mapping) else None
    if not isinstance(given, (str, Path)):
        return
    path = file_of(Path(given).expanduser())
    said = _read(path)
    layers.files.append(str(path))
    if isinstance(said, str):
        layers.problems.append(Problem(key, str(given), said))
        return
    found = described(_with_quantisation(said, path), name_of(path, said))
    text = _text_of(said)[0]
    undivided = _undivided(text) if found.fields and f"{place}.head_dim" not in layers.typed else ()
    layers.problems += [Problem(key, str(given), message) for message in (*found.problems, *undivided)]
    layers.notes += [f"{path}: {note}" for note in found.notes]
    for name, value in found.fields.items():
        sources = () if text.get(name) is not None else _SOURCES.get(name, ())
        layers.lay(f"{place}.{name}", value, f"from {path}", tuple(f"{place}.{each}" for each in sources))


def file_of(path: Path) -> Path:
    """Return the file itself, or the one in a folder."""
    return path / FILE if path.is_dir() else path


def name_of(path: Path, said: Mapping[str, Any]) -> str:
    """Return what to call the model: the name in the file, else that of its folder or of the file.

    Folders of Hugging Face's cache are called ``models--<owner>--<name>/snapshots/<revision>``.
    """
    cached = re.search(r"models--[^/]*?--([^/]+)", path.absolute().as_posix())
    told = said.get("_name_or_path")
    if cached:
        return cached[1]
    if isinstance(told, str) and (last := told.rstrip("/").rpartition("/")[2]) not in ("", "."):
        return last
    return (path.absolute().parent.name or FILE) if path.name == FILE else path.stem


def described(config: Mapping[str, Any], name: str) -> Described:
    """Return the fields of a model that a ``config.json`` describes, or why it cannot be modelled."""
    text, notes = _text_of(config)
    called = _class_of(config) or str(text.get("model_type") or name)
    family, problem = _family(config, text, called)
    weights = weights_of(config, text)
    problems = [] if problem is None else [problem]
    if isinstance(weights, Unknown):
        problems.append(f"quantisation {weights.name} is not modelled in this version")
    if family is None or isinstance(weights, Unknown):
        return Described({}, [], problems)
    fields = {key: text[key] for key in _AS_THEY_STAND if text.get(key) is not None}
    missing = [key for key in _AS_THEY_STAND if key not in fields]
    problems += [f"has no {key}" for key in missing]
    longest, note = _positions(text)
    if longest is None:
        problems.append("has no max_position_embeddings")
    notes += [note] if note else []
    tied = text.get("tie_word_embeddings", config.get("tie_word_embeddings"))
    fields |= {
        "name": name,
        **_heads(text),
        "max_position_embeddings": longest,
        "tie_word_embeddings": family.tied if tied is None else tied,
        "attention_bias": _bias(family, text),
        "qk_norm": family.qk_norm,
        "weights_dtype": weights.dtype,
    }
    return Described({} if problems else fields, [*notes, *weights.notes, *_left_out(text, family)], problems)


def _read(path: Path) -> Mapping[str, Any] | str:
    """Return what a file says, or what is wrong with it."""
    if not path.is_file():
        return "there is no such file, nor a folder with a config.json (a path on this machine)"
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        return error.strerror or str(error)
    except (ValueError, RecursionError) as error:
        return f"is not JSON: {error}"
    return said if isinstance(said, dict) else "is no config.json: it must be keys with values"


def _with_quantisation(config: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """Return a configuration with what stands in a file beside it, as NVIDIA's checkpoints have it."""
    beside = path.with_name(QUANTISATION_FILE)
    if "quantization_config" in config or not beside.is_file():
        return config
    said = _read(beside)
    named = {"quant_method": "modelopt", **said} if isinstance(said, Mapping) else said
    return {**config, "quantization_config": named}


def _text_of(config: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[str]]:
    """Return the part that describes the language model, and a note where there are other parts."""
    called = _class_of(config) or "the model"
    for key in _TEXT:
        if isinstance(config.get(key), Mapping):
            return config[key], [f"of {called}, only its {key} is modelled: no images, no audio"]
    if "vision_config" in config or "audio_config" in config:
        return config, [f"of {called}, only the language model is modelled: no images, no audio"]
    return config, []


def _class_of(config: Mapping[str, Any]) -> str | None:
    classes = config.get("architectures")
    return str(classes[0]) if isinstance(classes, list) and classes else None


def _family(
    config: Mapping[str, Any], text: Mapping[str, Any], called: str
) -> tuple[Family | None, str | None]:
    """Return the family of a model, or what keeps it from being modelled."""
    features = list(unmodelled(text))
    if features:
        return None, f"{called} has {listed(features, 'and')}, not modelled in this version"
    family = FAMILIES.get(str(text.get("model_type")))
    heads = {one.head for one in FAMILIES.values()}
    own = None if text is not config else _class_of(config)
    if family is None:
        return None, f"{called} is not modelled in this version; modelled are {listed(sorted(heads))}"
    if own is not None and own not in (family.head, "LLaMAForCausalLM"):
        return None, f"{own} is not modelled in this version; {family.head} is"
    return family, None


def _heads(text: Mapping[str, Any]) -> dict[str, Any]:
    """Return KV heads, one for each query head unless given, and the size of a head."""
    heads, hidden, size = (text.get(key) for key in ("num_attention_heads", "hidden_size", "head_dim"))
    if size is None and isinstance(heads, int) and isinstance(hidden, int) and heads:
        size = hidden // heads
    kv_heads = text.get("num_key_value_heads")
    return {"num_key_value_heads": heads if kv_heads is None else kv_heads, "head_dim": size}


def _undivided(text: Mapping[str, Any]) -> Iterator[str]:
    """Yield that heads have no size, where it is left out and does not follow from the width."""
    heads, hidden = text.get("num_attention_heads"), text.get("hidden_size")
    if text.get("head_dim") is not None or not (isinstance(heads, int) and isinstance(hidden, int)):
        return
    if heads > 0 and hidden % heads:
        yield f"has no head_dim, and its hidden_size {hidden} is no multiple of its {heads} heads"


def _bias(family: Family, text: Mapping[str, Any]) -> Any:
    if family.attention_bias is not None:
        return family.attention_bias
    return text.get("attention_bias") or False


def _positions(text: Mapping[str, Any]) -> tuple[Any, str | None]:
    """Return the longest sequence, and a note where rotary embeddings are stretched to it.

    As vLLM derives it (vllm: vllm/config/model.py): Llama 3's and LongRoPE's are stretched already; YaRN's
    factor is of the original length, and others' of the length in the file.
    """
    longest = text.get("max_position_embeddings")
    rope = text.get("rope_scaling") or text.get("rope_parameters")
    if not isinstance(rope, Mapping):
        return longest, None
    kind, factor = rope.get("rope_type", rope.get("type")), rope.get("factor")
    if kind in (None, "default", "llama3", "longrope", "su", "mrope") or not isinstance(factor, (int, float)):
        return longest, None
    base = rope.get("original_max_position_embeddings", longest) if kind == "yarn" else longest
    if not isinstance(base, int):
        return longest, None
    stretched = int(base * factor)
    return stretched, f"rope_scaling {kind} x {factor:g}: sequences of up to {stretched:,} tokens"


def _left_out(text: Mapping[str, Any], family: Family) -> Iterator[str]:
    """Yield which parameters are not counted; they are few."""
    if text.get("mlp_bias"):
        yield "biases of the MLP are not counted"
    if family.attention_bias is None and text.get("attention_bias"):
        yield "the bias of the attention's output is not counted"
