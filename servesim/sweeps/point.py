"""One point of a sweep: a scenario that has a place in the grid, and what became of it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from servesim import __version__
from servesim.check import ConfigError
from servesim.component import plain
from servesim.cost.auto import Auto
from servesim.cost.profile import Profile
from servesim.engine.clock import StalledError
from servesim.scenario import Scenario
from servesim.simulation import run
from servesim.sweeps.flat import Figure, flatten
from servesim.workload.trace import Trace

CLEAN, NOT_CLEAN, FAILED = "clean", "not_clean", "failed"


class Outcome(NamedTuple):
    """What became of a point: its status, the error of a failed one, the figures of any other."""

    status: str
    error: str | None
    figures: dict[str, Figure]

    @classmethod
    def failed(cls, error: str) -> Outcome:
        """Return the outcome of a point that has no figures."""
        return cls(FAILED, error, {})


@dataclass(frozen=True)
class Point:
    """A scenario with its place in the grid.

    ``configuration`` is the number of its configuration, ``load`` its value on a load axis that found itself.
    ``outcome`` is there before anything has run where the scenario cannot run at all.
    """

    configuration: int
    load: float | int | None
    seed: int
    overrides: tuple[str, ...]
    scenario: Scenario
    hash: str
    outcome: Outcome | None = None

    def command(self, config_dir: Path | None) -> str:
        """Return the command line that runs this very point."""
        folder = () if config_dir is None else ("--config-dir", str(config_dir))
        return shlex.join(["servesim", *folder, *self.overrides])


def simulate(scenario: Scenario) -> tuple[Outcome, bool]:
    """Run one scenario; return what became of it, and whether it would become of it again.

    An error that nobody foresaw (memory ran out, a fault in the code) is reported like any other, but a
    sweep that is run again tries such a point again.
    """
    try:
        summary = run(scenario).summary
    except (ConfigError, StalledError) as error:
        return Outcome.failed(str(error)), True
    except Exception as error:
        return Outcome.failed(f"{type(error).__name__}: {error}"), False
    status = CLEAN if summary["accounting"]["clean"] else NOT_CLEAN
    return Outcome(status, None, flatten(summary)), True


class Hashes:
    """Content hashes of scenarios: of all their values, the version, and the profiles behind step times.

    A trace counts by what its file holds, and its tokenizer's. Each component is read once, however many
    scenarios share it.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, bytes]] = {}

    def of(self, scenario: Scenario) -> str:
        """Return the hash of a scenario."""
        return blake2b(__version__.encode() + self._of_fields(scenario), digest_size=16).hexdigest()

    def _of_fields(self, component: Any) -> bytes:
        parts = ((field.name, getattr(component, field.name)) for field in fields(component))
        return b"".join(name.encode() + b"=" + self._digest(value) + b";" for name, value in parts)

    def _digest(self, value: Any) -> bytes:
        """Return what stands for a value: components that scenarios share are gone through once."""
        if isinstance(value, (str, int, float, type(None))):
            return repr(value).encode()
        if not is_dataclass(value):
            return json.dumps(plain(value), sort_keys=True).encode()
        if id(value) not in self._known:
            self._known[id(value)] = value, blake2b(self._said(value), digest_size=16).digest()
        return self._known[id(value)][1]

    def _said(self, component: Any) -> bytes:
        name = type(component).__name__.encode()
        if isinstance(component, (Auto, Profile)):
            return name + json.dumps(component.described(), sort_keys=True).encode()
        files = (component.path, component.tokenizer) if isinstance(component, Trace) else ()
        content = (file_digest(Path(file)) for file in files if file is not None)
        return name + self._of_fields(component) + b"".join(content)


def file_digest(path: Path) -> bytes:
    """Return a hash of what a file holds; nothing where there is none."""
    path = path.expanduser()
    if not path.is_file():
        return b""
    whole = blake2b(digest_size=16)
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            whole.update(part)
    return whole.digest()


def as_line(outcome: Outcome) -> str:
    """Return an outcome as one line of JSON."""
    return json.dumps(outcome._asdict(), allow_nan=False)


def of_line(text: str | bytes) -> Outcome:
    """Return the outcome that a line of JSON holds.

    Raises:
        ValueError: the line is torn, or no outcome.
    """
    try:
        said: Mapping[str, Any] = json.loads(text)
    except RecursionError as error:
        raise ValueError("no outcome") from error
    if not isinstance(said, dict) or set(said) != set(Outcome._fields):
        raise ValueError("no outcome")
    outcome = Outcome(**said)
    if not (outcome.status in (CLEAN, NOT_CLEAN, FAILED) and _has_figures(outcome)):
        raise ValueError("no outcome")
    return outcome


def _has_figures(outcome: Outcome) -> bool:
    """Tell whether an outcome has an error, or figures, as its status says."""
    figures: Any = outcome.figures
    if not isinstance(figures, dict) or not all(isinstance(each, Figure) for each in figures.values()):
        return False
    return isinstance(outcome.error, str) if outcome.status == FAILED else bool(figures)
