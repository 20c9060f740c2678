"""What the controls of the dashboard say, and how that reads as a URL, as overrides and as a command.

A control has one name everywhere: it is a field here, a parameter of the URL and the id of the control; of
configuration B, with ``b-`` before it. What is as the configuration files have it is left out of URLs and
commands.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from math import isfinite
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode

from servesim.check import Problem

Value = str | int | float | None
Part = TypeVar("Part")

B = "b-"  # before the names of what configuration B has of its own
COMPARE = "compare"

RATE = "workload.arrivals.rate_rps"


def control(kind: type, default: Value, *keys: str) -> Any:
    """Declare a control: the kind of its values, the value it starts with, and the keys that it sets.

    A value that is None stands for no value: as the model or the GPU has it, or no limit.
    """
    return field(default=default, metadata={"kind": kind, "keys": keys})


@dataclass(frozen=True)
class Setup:
    """A configuration: model, GPUs, and how they serve."""

    model: str = control(str, "llama3.1-70b", "model")
    gpu: str = control(str, "h100-sxm", "gpu")
    weights: str | None = control(str, None, "model.weights_dtype")
    tp: Value = control(int, 4, "cluster.tensor_parallel_size")
    kv: str = control(str, "auto", "scheduler.kv_cache_dtype")
    scheduler: str = control(str, "continuous", "scheduler")
    replicas: Value = control(int, 2, "cluster.replicas")
    prefill: Value = control(int, 1, "cluster.prefill.replicas")
    decode: Value = control(int, 1, "cluster.decode.replicas")
    price: Value = control(float, None, "pricing.usd_per_gpu_hour")

    @property
    def pooled(self) -> bool:
        """Whether all replicas are alike, rather than for prefill or for decode."""
        return self.scheduler != "disaggregated"

    def overrides(self) -> Iterator[str]:
        """Yield what is not as the configuration files have it."""
        unused = ("prefill", "decode") if self.pooled else ("replicas",)
        for name, keys, value in _changes(self):
            if name == "tp" and not self.pooled:
                keys = tuple(f"cluster.{pool}.tensor_parallel_size" for pool in ("prefill", "decode"))
            if name not in unused:
                yield from (f"{key}={written(value)}" for key in keys)


@dataclass(frozen=True)
class Demand:
    """What is asked of the configurations: traffic, and the limits that a request must meet."""

    rate: Value = control(float, 4.0, RATE)
    lengths: str = control(str, "conversation", "workload/lengths")
    input: Value = control(int, 512, "workload.lengths.input")
    output: Value = control(int, 256, "workload.lengths.output")
    requests: Value = control(int, 2000, "workload.requests")
    seed: Value = control(int, 0, "seed")
    ttft: Value = control(float, 0.5, "slo.ttft_s")
    tpot: Value = control(float, 0.05, "slo.tpot_s")
    attainment: Value = control(float, 0.99, "slo.attainment")

    def overrides(self) -> Iterator[str]:
        """Yield what is not as the configuration files have it."""
        unused = () if self.lengths == "fixed" else ("input", "output")
        for name, keys, value in _changes(self):
            if name not in unused:
                yield from (f"{key}={written(value)}" for key in keys)


@dataclass(frozen=True)
class View:
    """Which loaded sweep is shown, if any, and the price that it is reckoned with."""

    sweep: str | None = control(str, None)
    sweep_price: Value = control(float, None)


@dataclass(frozen=True)
class State:
    """The whole dashboard: configuration A, configuration B if two are compared, and what is asked."""

    a: Setup = Setup()
    b: Setup | None = None
    demand: Demand = Demand()
    view: View = View()

    @property
    def setups(self) -> dict[str, Setup]:
        """The configurations by their letters."""
        return {"A": self.a} | ({"B": self.b} if self.b else {})

    def overrides(self, setup: Setup) -> tuple[str, ...]:
        """Return the overrides that make one of the configurations face what is asked."""
        return (*setup.overrides(), *self.demand.overrides())

    def commands(self) -> list[str]:
        """Return the command line that runs each configuration."""
        return [command(self.overrides(setup)) for setup in self.setups.values()]

    def values(self) -> dict[str, Value]:
        """Return the value of every control by its name; what B has is as A has it where there is no B."""
        own = {B + name: value for name, value in vars(self.b or self.a).items()}
        return {**vars(self.a), **own, **vars(self.demand), **vars(self.view)}

    @classmethod
    def of(cls, values: Mapping[str, Any], compare: bool) -> State:
        """Return the state of controls with these values; what is missing is as it starts, B's as A's."""
        a = _part(Setup, values)
        b = _part(Setup, {**vars(a), **{n[len(B) :]: v for n, v in values.items() if n.startswith(B)}})
        return cls(a, b if compare else None, _part(Demand, values), _part(View, values))

    def shows(self, name: str) -> bool:
        """Tell whether a control is seen: what cannot be seen to be corrected is not asked for, either.

        A name that is no control's counts as seen.
        """
        if name not in KINDS:
            return True
        if self.view.sweep or name in _OF_SWEEPS:
            return name in _OF_SWEEPS and (name != "sweep_price" or self.view.sweep is not None)
        if name.startswith(B):
            return self.b is not None and _shows(self.b, name[len(B) :])
        if name in ("input", "output"):
            return self.demand.lengths == "fixed"
        return _shows(self.a, name)

    def query(self) -> str:
        """Return the state as the query string of a URL, with its question mark; empty at the start."""
        said = [
            (name, value) for part in (self.a, self.demand, self.view) for name, _, value in _changes(part)
        ]
        if self.b:
            said.append((COMPARE, 1))
            said += [(B + name, value) for name, value in vars(self.b).items() if value != vars(self.a)[name]]
        text = urlencode([(name, "" if value is None else written(value)) for name, value in said])
        return f"?{text}" if text else ""

    @classmethod
    def read(cls, query: str) -> tuple[State, list[Problem]]:
        """Return the state that a query string describes, and what in it could not be read."""
        given = dict(parse_qsl(query.removeprefix("?"), keep_blank_values=True))
        compare = bool(given.pop(COMPARE, ""))
        found = [
            Problem(name, text, "there is no such control")
            for name, text in given.items()
            if name not in KINDS
        ]
        values: dict[str, Value] = {}
        for name, text in given.items():
            if name in KINDS:
                try:
                    values[name] = _read(name, text)
                except ValueError:
                    found.append(Problem(name, text, f"must be {_WORDS[KINDS[name]]}"))
        return cls.of(values, compare), found


def query_of(values: Mapping[str, Any], compare: bool) -> str:
    """Return the query string of controls with these values, whether they can be read or not."""
    said = {name: "" if value is None else value for name, value in values.items()}
    return "?" + urlencode(said | ({COMPARE: 1} if compare else {}))


def command(overrides: tuple[str, ...]) -> str:
    """Return the command line that runs overrides."""
    return shlex.join(["servesim", *overrides])


def written(value: Value) -> str:
    """Return a value as it is typed: as few digits as mean exactly this number."""
    if value is None:
        return "null"
    return (
        str(int(value))
        if isinstance(value, float) and value.is_integer() and abs(value) < 1e15
        else str(value)
    )


def _changes(part: Any) -> Iterator[tuple[str, tuple[str, ...], Value]]:
    """Yield name, keys and value of the fields that are not as they start."""
    for each in fields(part):
        value = getattr(part, each.name)
        if value != each.default:
            yield each.name, each.metadata["keys"], value


def _part(kind: type[Part], values: Mapping[str, Any]) -> Part:
    known = {each.name: each.metadata["kind"] for each in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: _as(known[name], value) for name, value in values.items() if name in known})


def _as(kind: type, value: Value) -> Value:
    """Return a value as its control holds it: no text is no value, and numbers are of one type."""
    if value == "" or value is None:
        return None
    if kind is str:
        return str(value)
    number = float(value)
    return int(number) if kind is int and number.is_integer() else number


def _read(name: str, text: str) -> Value:
    """Return the value that a URL gives a control: a URL is anybody's, so it may have nothing filled in."""
    value = _as(KINDS[name], text)
    if isinstance(value, float) and not isfinite(value):
        raise ValueError
    if isinstance(value, str) and "${" in value:
        raise ValueError
    return value


def _shows(setup: Setup, name: str) -> bool:
    return name not in (("prefill", "decode") if setup.pooled else ("replicas",))


#: The controls that are seen beside a loaded sweep.
_OF_SWEEPS = ("sweep", "sweep_price", "ttft", "tpot", "attainment")

_WORDS = {int: "a whole number", float: "a number", str: "a plain name, without ${"}

#: The kind of value of every control, by its name.
KINDS: dict[str, type] = {
    before + each.name: each.metadata["kind"]
    for part, before in ((Setup, ""), (Setup, B), (Demand, ""), (View, ""))
    for each in fields(part)
}
