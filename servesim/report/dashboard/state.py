"""What the controls of the dashboard say, and how that reads as a URL, as overrides and as a command.

Names of configuration B have ``b-`` before them. What is as it starts is left out of URLs and commands.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any
from urllib.parse import parse_qsl, urlencode

from servesim.check import Problem
from servesim.report.dashboard.demand import Demand
from servesim.report.dashboard.part import Part, Value, as_kind, control, kinds, written
from servesim.report.dashboard.setup import Setup

B = "b-"  # before the names of what configuration B has of its own
COMPARE = "compare"


@dataclass(frozen=True)
class View(Part):
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
        a = Setup.of(values)
        b = Setup.of({**vars(a), **{n[len(B) :]: v for n, v in values.items() if n.startswith(B)}})
        return cls(a, b if compare else None, Demand.of(values), View.of(values))

    def part(self, name: str) -> tuple[Part, str]:
        """Return the part that has a control, and what it is called there; B's is A's where there is no B."""
        if name.startswith(B):
            return self.b or self.a, name[len(B) :]
        parts: tuple[Part, ...] = (self.a, self.demand, self.view)
        return next(part for part in parts if name in vars(part)), name

    def shows(self, name: str) -> bool:
        """Tell whether a control is seen: what cannot be seen to be corrected is not asked for, either.

        A name that is no control's counts as seen.
        """
        if name not in KINDS:
            return True
        if self.view.sweep or name in _OF_SWEEPS:
            return name in _OF_SWEEPS and (name != "sweep_price" or self.view.sweep is not None)
        part, own = self.part(name)
        return part.shows(own) and (self.b is not None or not name.startswith(B))

    def to_blame(self, problem: Problem, letter: str) -> list[str]:
        """Return the controls that a problem of a configuration is of: those whose key is nearest to it."""
        before = B if letter == "B" else ""
        own = [before + name for name in vars(self.a)]
        near = {
            name: len(key)
            for name in (*own, *vars(self.demand))
            for part, short in [self.part(name)]
            for key in part.keys(short)
            if self.shows(name) and f"{problem.path}.".startswith(f"{key.replace('/', '.')}.")
        }
        return [name for name, length in near.items() if length == max(near.values())]

    def query(self) -> str:
        """Return the state as the query string of a URL, with its question mark; empty at the start."""
        said = [change for part in (self.a, self.demand, self.view) for change in part.changes()]
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


def _read(name: str, text: str) -> Value:
    """Return the value that a URL gives a control: a URL is anybody's, so it may have nothing filled in."""
    value = as_kind(KINDS[name], text)
    if isinstance(value, float) and not isfinite(value):
        raise ValueError
    if isinstance(value, str) and "${" in value:
        raise ValueError
    return value


#: The controls that are seen beside a loaded sweep.
_OF_SWEEPS = ("sweep", "sweep_price", "ttft", "tpot", "attainment")

_WORDS = {int: "a whole number", float: "a number", str: "a plain name, without ${"}

#: The kind of value of every control, by its name.
KINDS: dict[str, type] = {
    **kinds(Setup),
    **{B + name: kind for name, kind in kinds(Setup).items()},
    **kinds(Demand),
    **kinds(View),
}
