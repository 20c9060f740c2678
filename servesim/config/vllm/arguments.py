"""Reading the command line of ``vllm serve``, or a file for its ``--config``, into flags."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from servesim.check import Problem

KEY = "engine_args"

#: Short names of flags (vllm: vllm/engine/arg_utils.py).
_SHORT = {
    "-tp": "tensor_parallel_size",
    "-pp": "pipeline_parallel_size",
    "-dp": "data_parallel_size",
    "-dpl": "data_parallel_size_local",
    "-dcp": "decode_context_parallel_size",
    "-pcp": "prefill_context_parallel_size",
    "-ep": "enable_expert_parallel",
    "-q": "quantization",
    "-O": "optimization_level",
    "-cc": "compilation_config",
    "-sc": "speculative_config",
    "-ac": "attention_config",
    "-n": "nnodes",
    "-r": "node_rank",
    "-asc": "api_server_count",
}
#: Flags without a value, beside those whose names begin as switches do.
_SWITCHES = ("enforce_eager", "trust_remote_code", "async_scheduling", "calculate_kv_scales", "headless")
_SWITCH = re.compile(r"(no|enable|disable|skip|use|return|aggregate|fully|interleave)_")
_NUMBER = re.compile(r"-\d+(\.\d+)?")
#: What is quoted or escaped, and a brace outside of that with which a value may begin.
_QUOTED_OR_BRACE = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*"|\\.|(?<=[\s=])\{""", re.DOTALL)


class Flag(NamedTuple):
    """A flag: its name with underscores, its value (True where it has none), and how it is written."""

    name: str
    value: Any
    typed: str

    def problem(self, message: str) -> Problem:
        """Return what is wrong with it."""
        return Problem(KEY, self.written, message)

    @property
    def written(self) -> str:
        """The flag with its value, as on a command line."""
        if isinstance(self.value, bool):
            return self.typed
        if isinstance(self.value, Mapping):
            return f"{self.typed} {json.dumps(self.value, default=str)}"
        values = self.value if isinstance(self.value, list) else [self.value]
        return " ".join([self.typed, *map(str, values)])


class Given(NamedTuple):
    """The flags that were given, by name, what is wrong with the rest, and the files they are from.

    ``repeated`` are flags that were given before another one of their name, which counts instead.
    """

    flags: dict[str, Flag]
    problems: list[Problem]
    files: tuple[str, ...]
    repeated: tuple[str, ...] = ()


def read_arguments(given: str) -> Given:
    """Return the flags of a command line, or of a YAML file whose path is given instead.

    A command line wins over the file that its ``--config`` names, as in vLLM.
    """
    if re.fullmatch(r"\S.*\.ya?ml", given.strip()) and not given.lstrip().startswith("-"):
        path = Path(given.strip()).expanduser()
        if path.is_file() or len(given.split()) == 1:
            return _of_file(path)
    try:
        words = shlex.split(_with_json_quoted(given.replace("\\\n", " ")))
    except ValueError as error:
        return Given({}, [Problem(KEY, given, f"is no command line: {error}")], ())
    found: list[Problem] = []
    flags, repeated = _by_name(_flags(_after_the_command(words), found))
    config = flags.pop("config", None)
    if config is None:
        return Given(flags, found, (), repeated)
    beside = _of_file(Path(str(config.value)).expanduser())
    repeated += beside.repeated
    return Given({**beside.flags, **flags}, [*found, *beside.problems], beside.files, repeated)


def _with_json_quoted(text: str) -> str:
    """Return a command line in which JSON that a shell has taken the quotes from stands in quotes again."""
    parts, place = [], 0
    while match := _QUOTED_OR_BRACE.search(text, place):
        start, end = match.span()
        word = match[0]
        if word == "{":
            try:
                end = json.JSONDecoder().raw_decode(text, start)[1]
                word = shlex.quote(text[start:end])
            except (ValueError, RecursionError):
                pass  # no JSON: a brace like any other letter
        parts += [text[place:start], word]
        place = end
    return "".join([*parts, text[place:]])


def _by_name(flags: Iterable[Flag]) -> tuple[dict[str, Flag], tuple[str, ...]]:
    """Return the last flag of each name, as argparse does, and those before it that say something else.

    Keys of one flag, given apart, are its value together.
    """
    last: dict[str, Flag] = {}
    repeated = []
    for flag in flags:
        earlier = last.get(flag.name)
        if earlier is not None and isinstance(earlier.value, Mapping) and isinstance(flag.value, Mapping):
            both = {**earlier.value, **flag.value}
            if both != {**flag.value, **earlier.value}:
                repeated.append(f"{earlier.written} before {flag.written}")
            flag = flag._replace(value=both)
        elif earlier is not None and earlier.value != flag.value:
            repeated.append(f"{earlier.written} before {flag.written}")
        last[flag.name] = flag
    return last, tuple(repeated)


def _after_the_command(words: Sequence[str]) -> Sequence[str]:
    """Return what follows ``vllm serve`` or ``python -m vllm.entrypoints...``, where that is there."""
    for place, word in enumerate(words):
        if word.startswith("--"):
            break
        if word == "serve" or word.startswith("vllm.entrypoints."):
            return words[place + 1 :]
    return words


def _flags(words: Sequence[str], found: list[Problem]) -> Iterator[Flag]:
    """Yield the flags of a command line, a word on its own at first being the model."""
    rest, model_known = list(words), False
    while rest:
        word = rest.pop(0)
        if not _is_flag(word):
            if model_known:
                found.append(Problem(KEY, word, "is no flag, and the model has been named before"))
            model_known = True
            yield Flag("model", word, "--model")
            continue
        typed, equals, value = word.partition("=")
        name = _name(typed)
        if not re.fullmatch(r"\w+", name):
            found.append(Problem(KEY, typed, "is no flag: a name and its value are two words"))
            continue
        values = [value] if equals else _values(name, rest)
        yield _flag(name, values, typed)


def _values(name: str, rest: list[str]) -> list[str]:
    """Take the values of a flag off the words that follow it."""
    values = []
    switch = name in _SWITCHES or _SWITCH.match(name)
    while rest and not _is_flag(rest[0]):
        if switch and rest[0].lower() not in ("true", "false"):
            break
        values.append(rest.pop(0))
        if switch:
            break
    return values


def _flag(name: str, values: Sequence[str], typed: str) -> Flag:
    """Return a flag of a command line, whose value may be several words or none."""
    return _switched(name, True if not values else values[0] if len(values) == 1 else list(values), typed)


def _switched(name: str, value: Any, typed: str) -> Flag:
    """Return a flag; ``--no-x`` is x, switched off, and ``--x.key`` is x with one key of its value."""
    if isinstance(value, str) and value.lower() in ("true", "false"):
        value = value.lower() == "true"
    if name.startswith("no_") and isinstance(value, bool):
        return Flag(name.removeprefix("no_"), not value, typed)
    typed, *keys = typed.split(".")
    for key in reversed(keys):
        value = {key.rstrip("+").replace("-", "_"): _json(value)}
    return Flag(name, value, typed)


def _json(value: Any) -> Any:
    """Return a value of a key as JSON has it, or as it stands where it is none."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value


def _is_flag(word: str) -> bool:
    return len(word) > 1 and word.startswith("-") and not _NUMBER.fullmatch(word)


def _name(typed: str) -> str:
    base = typed.partition(".")[0]
    if base in _SHORT:
        return _SHORT[base]
    if re.fullmatch(r"-O\d", base):
        return "optimization_level"
    return base.lstrip("-").replace("-", "_").rstrip("+")


def _of_file(path: Path) -> Given:
    """Return the flags of a YAML file: names with their values."""
    files = (str(path),)

    def wrong(message: str) -> Given:
        return Given({}, [Problem(KEY, str(path), message)], files)

    try:
        text = path.read_text(encoding="utf-8")
        said, root = yaml.safe_load(text), yaml.compose(text, yaml.SafeLoader)
    except OSError as error:
        return wrong(f"cannot be read: {error.strerror or error}")
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return wrong(f"is not YAML: {' '.join(str(error).split())}")
    if not isinstance(said, Mapping):
        return wrong("is no configuration of vLLM: it must be names of flags with values")
    flags, differing = _by_name(
        _switched(_name(str(key)), value, f"--{str(key).replace('_', '-')}")
        for key, value in said.items()
        if value is not None
    )
    keys = Counter(str(key.value) for key, _ in root.value)
    repeated = (f"{key} in {path}, {count} times" for key, count in keys.items() if count > 1)
    return Given(flags, [], files, (*repeated, *differing))
