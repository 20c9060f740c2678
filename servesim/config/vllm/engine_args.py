"""An engine by the flags it is started with: ``engine_args="--tensor-parallel-size 4 ..."``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from servesim.config.hf.model import FILE
from servesim.config.hf.model import KEY as HF_CONFIG
from servesim.config.hf.quantisation import Unknown, method_weights
from servesim.config.layers import Layers
from servesim.config.names import is_slip, nearest
from servesim.config.nested import value_at
from servesim.config.vllm.arguments import KEY, Flag, Given, read_arguments
from servesim.config.vllm.flags import OFF, OPERATIONAL, REFUSED, RULES, TIMED, default_steps, switch
from servesim.config.vllm.models import known_model, option_of
from servesim.config.vllm.speculation import speculation_of

_READ_HERE = (
    "model", "hf_config_path", "quantization", "dtype", "data_parallel_size", "speculative_config"
)  # fmt: skip
_SPECULATION = "scheduler.speculation"
_RATES = ("acceptance", "mean_accepted_length")
_CACHING = "enable_prefix_caching"
#: Dtypes of 16 bits, or left to the checkpoint: as they are modelled.
_HALF = ("auto", "bfloat16", "float16", "half")


class EngineArgs:
    """Lays what flags say: first of the model, which may name a file to be read, then all the rest."""

    def __init__(self, layers: Layers, folders: Sequence[Path]) -> None:
        given = layers.values.get(KEY)
        self._layers, self._folders = layers, folders
        read = read_arguments(given) if isinstance(given, str) else Given({}, [], ())
        self._flags, self._repeated = read.flags, read.repeated
        self._set: list[str] = []
        self._outdone: list[str] = []
        layers.problems += read.problems
        layers.files += read.files

    def lay_model(self) -> None:
        """Lay the model that the flags name, unless one was typed."""
        name, config = self._flags.get("model"), self._flags.get("hf_config_path")
        if config is not None:
            self._lay(HF_CONFIG, str(config.value), config)
        if name is None or config is not None:
            return
        folder = Path(str(name.value)).expanduser()
        known = known_model(str(name.value))
        if not self._layers.typed.isdisjoint(("model", HF_CONFIG)):
            self._outdone.append(name.written)
        elif (folder / FILE).is_file():
            self._lay(HF_CONFIG, str(folder), name)
        elif known is not None:
            option = option_of("model", known.option, self._folders)
            for key, value in {**option, "weights_dtype": known.weights_dtype}.items():
                self._layers.lay(f"model.{key}", value, f"{name.written} of {KEY}")
            self._set.append(f"model={known.option} with weights in {known.weights_dtype}")
        else:
            message = "is no model that ships: model=NAME or model.hf_config=PATH says which it is"
            self._layers.notes.append(f"{KEY}: {name.written} {message}; here it is {self._model_name()}")

    def lay_rest(self) -> None:
        """Lay everything else, and note what was set, what was not, and why."""
        for flag in self._flags.values():
            if flag.name in RULES:
                self._follow(flag)
            elif flag.name in REFUSED and not _is_off(flag):
                self._layers.problems.append(flag.problem(REFUSED[flag.name]))
            elif not self._is_known(flag.name) and (close := _meant(flag.name)):
                self._layers.problems.append(flag.problem(f"is no flag; did you mean --{close}?"))
        self._quantise()
        self._replicate()
        self._speculate()
        self._layers.notes += [f"{KEY} {note}" for note in self._notes()]

    def _follow(self, flag: Flag) -> None:
        """Set the key that a flag stands for."""
        rule = RULES[flag.name]
        if flag.value in ("None", "none") or (flag.name == _CACHING and not self._caches):
            return
        try:
            if flag.value is True and rule.read is not switch:
                raise ValueError("needs a value")
            value = rule.read(flag.value)
        except ValueError as error:
            self._layers.problems.append(flag.problem(str(error)))
            return
        for key in self._places(rule.key):
            self._lay(key, value, flag)

    def _places(self, key: str) -> Iterator[str]:
        """Yield a key; of a pool, that of each pool."""
        cluster = self._layers.values.get("cluster")
        pools = [name for name in ("prefill", "decode") if isinstance(cluster, Mapping) and name in cluster]
        if key.startswith("cluster.") and pools:
            yield from (f"cluster.{pool}.{key.removeprefix('cluster.')}" for pool in pools)
        else:
            yield key

    def _quantise(self) -> None:
        """Set the dtype of the weights, or refuse one that is not modelled."""
        dtype, method = self._flags.get("dtype"), self._flags.get("quantization")
        if dtype is not None and dtype.value not in _HALF:
            message = "is not modelled in this version: weights and activations have 16 bits or fewer"
            self._layers.problems.append(dtype.problem(message))
        if method is None or method.value in OFF:
            return
        if method.value in ("compressed-tensors", "modelopt"):
            note = f"{method.written} leaves the dtype to the checkpoint; here it is {self._model_dtype()}"
            self._layers.notes.append(f"{KEY}: {note}")
            return
        weights = method_weights(str(method.value))
        if isinstance(weights, Unknown):
            self._layers.problems.append(method.problem("is not modelled in this version"))
        else:
            self._lay("model.weights_dtype", weights.dtype, method)

    def _replicate(self) -> None:
        """Let each engine of a data-parallel server be a replica."""
        flag = self._flags.get("data_parallel_size")
        if flag is None:
            return
        if tuple(self._places("cluster.replicas")) != ("cluster.replicas",):
            note = "cluster.prefill.replicas and cluster.decode.replicas say how many engines there are"
            self._layers.notes.append(f"{KEY}: {flag.written} is left out: {note}")
            return
        try:
            self._lay("cluster.replicas", RULES["max_num_seqs"].read(flag.value), flag)
        except ValueError as error:
            self._layers.problems.append(flag.problem(str(error)))

    def _speculate(self) -> None:
        """Let drafts be verified as the flags say; keys beside them that were typed win."""
        flag, scheduler = self._flags.get("speculative_config"), self._layers.values.get("scheduler")
        if flag is None or _is_off(flag) or not isinstance(scheduler, Mapping):
            return
        if _SPECULATION.replace(".", "/") in self._layers.typed:
            self._outdone.append(flag.written)
            return
        try:
            said = speculation_of(flag.value, self._folders)
        except ValueError as error:
            self._layers.problems.append(flag.problem(str(error)))
            return
        if not self._layers.lay(_SPECULATION, said, f"{flag.typed} of {KEY}"):
            self._outdone.append(flag.written)
            return
        told = value_at(self._layers.values, _SPECULATION.split("."))
        drafted = f"{_SPECULATION}.num_speculative_tokens={told['num_speculative_tokens']}"
        self._set += [_typed(_SPECULATION, told), drafted]
        if self._layers.typed.isdisjoint(f"{_SPECULATION}.{key}" for key in _RATES):
            note = f"{flag.typed} says nothing of acceptance; here it is {told['acceptance']}"
            self._layers.notes.append(f"{KEY}: {note}")

    def _lay(self, key: str, value: Any, flag: Flag) -> None:
        laid = self._layers.lay(key, value, f"{flag.typed} of {KEY}")
        if laid:
            self._set.append(_typed(key, value))
        else:
            self._outdone.append(flag.written)

    def _notes(self) -> Iterator[str]:
        """Yield what became of the flags."""
        flags = self._flags
        if self._set:
            yield f"set {', '.join(self._set)}"
        if self._repeated:
            yield f"say twice, of which the last counts: {', '.join(self._repeated)}"
        if self._outdone:
            yield f"outdone by the keys beside them: {', '.join(dict.fromkeys(self._outdone))}"
        yield from self._on_caching()
        yield from self._left_open()
        timed = [flag for flag in flags.values() if flag.name in TIMED and flag.value is not False]
        if timed:
            yield f"not modelled, though they change times or memory: {_listed(timed)}"
        idle = [flag for flag in flags.values() if flag.name in OPERATIONAL or _is_off_of(flag)]
        if idle:
            yield f"without effect here: {_listed(idle)}"
        unknown = [flag for flag in flags.values() if not self._is_known(flag.name) and not _meant(flag.name)]
        if unknown:
            yield f"not known here, and left out: {_listed(unknown)}"

    @property
    def _caches(self) -> bool:
        """Whether the scheduler is one that can cache prefixes."""
        scheduler = self._layers.values.get("scheduler")
        return isinstance(scheduler, Mapping) and _CACHING in scheduler

    def _on_caching(self) -> Iterator[str]:
        """Yield that prefix caching is nothing to the scheduler, where the flags speak of it."""
        flag = self._flags.get(_CACHING)
        if flag is not None and not self._caches:
            yield f"{flag.typed}: without effect, as static batching caches no prefixes"

    def _left_open(self) -> Iterator[str]:
        """Yield what vLLM would choose in another way, where neither flags nor keys say it."""
        scheduler, gpu = (self._layers.values.get(name) for name in ("scheduler", "gpu"))
        if not (self._flags and isinstance(scheduler, Mapping) and isinstance(gpu, Mapping)):
            return
        theirs = default_steps(gpu)
        open_ = [
            name
            for name in theirs
            if name in scheduler and name not in self._flags and f"scheduler.{name}" not in self._layers.typed
        ]
        differing = [name for name in open_ if scheduler[name] != theirs[name]]
        if differing:
            ours = ", ".join(f"{name}={scheduler[name]}" for name in differing)
            others = ", ".join(str(theirs[name]) for name in differing)
            yield f"leave {ours} as it is; vLLM's own on this GPU: {others}"

    def _is_known(self, name: str) -> bool:
        return name in RULES or name in REFUSED or name in TIMED | OPERATIONAL or name in _READ_HERE

    def _model_name(self) -> Any:
        model = self._layers.values.get("model")
        return model.get("name") if isinstance(model, Mapping) else model

    def _model_dtype(self) -> Any:
        model = self._layers.values.get("model")
        return model.get("weights_dtype") if isinstance(model, Mapping) else model


def _typed(key: str, value: Any) -> str:
    """Return what would have to be typed to set a key, or to choose an option where the value is one."""
    if isinstance(value, Mapping) and "kind" in value:
        return f"{key.replace('.', '/')}={value['kind']}"
    if isinstance(value, Mapping):
        return ", ".join(_typed(f"{key}.{name}", part) for name, part in value.items())
    return f"{key}={str(value).lower() if isinstance(value, bool) else value}"


def _meant(name: str) -> str | None:
    """Return the flag that was probably meant by a name that is none, with its dashes."""
    close = nearest(name, [*RULES, *_READ_HERE])
    return close.replace("_", "-") if close and is_slip(name, close) else None


def _is_off(flag: Flag) -> bool:
    return (
        isinstance(flag.value, (bool, int, str, type(None))) and flag.value is not True and flag.value in OFF
    )


def _is_off_of(flag: Flag) -> bool:
    """Tell whether a flag would change the deployment, but is off."""
    return (flag.name in REFUSED and _is_off(flag)) or (flag.name in TIMED and flag.value is False)


def _listed(flags: Iterable[Flag]) -> str:
    return ", ".join(flag.typed for flag in flags)
