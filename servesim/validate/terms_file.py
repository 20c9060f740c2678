"""The file that fitted terms go into: an option of the group ``engine_overhead``, and where it is from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from servesim.files import in_one_go
from servesim.scenario import Scenario
from servesim.validate.closed_loop import Scores
from servesim.validate.fit import TERMS
from servesim.validate.terms import FittedTerms
from servesim.words import listed

_FILE = """\
# {name}: what the engine adds to the time of its kernels (servesim/cost/overhead.py).
# Written by `servesim validate --fit`: fitted to measured runs by simulating them.
name: {name}
engine: {engine}
engine_version: "{version}"

# Host time of a step, s: scheduling, preparing inputs, launches, sampling.
step_s: {step_s}

# Host time per sequence of a step, s.
sequence_s: {sequence_s}

# What prefill tokens take, in units of their kernels' time.
prefill_factor: {prefill_factor}

{about}"""


def write_terms(found: FittedTerms, scenario: Scenario, source: str, split: str, path: Path) -> None:
    """Write fitted terms as an option, with their intervals, their errors, and what the runs cannot tell."""
    terms = found.overhead
    about: dict[str, Any] = {"model": scenario.model.name, "gpu": scenario.gpu.name}
    if terms.ranges:
        about["ranges"] = dict(terms.ranges)
    about["provenance"] = _provenance(found, source, split, scenario)
    text = _FILE.format(
        name=terms.name,
        engine=terms.engine,
        version=terms.engine_version,
        about=yaml.safe_dump(about, sort_keys=False, width=110),
        **{name: _number(getattr(terms, name)) for name in TERMS},
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with in_one_go(path) as beside:
        beside.write_text(text, encoding="utf-8")


def _provenance(found: FittedTerms, source: str, split: str, scenario: Scenario) -> dict[str, Any]:
    said: dict[str, Any] = {
        "runs": f"{found.fitted.n} of {source}, fitted on {listed(map('.'.join, found.runs.figures), 'or')}",
        "calibration": scenario.calibration.name,
        "split": split,
        "intervals": {name: [_round(term.low), _round(term.high)] for name, term in found.fit.terms.items()},
    }
    if doubts := found.fit.doubts():
        said["cannot_tell"] = doubts
    said["fitted"] = _scores(found.fitted)
    if found.held_out.n:
        said["held_out"] = _scores(found.held_out)
        said["held_out_kernels_alone"] = _scores(found.held_out_kernels_alone)
    return said


def _scores(scores: Scores) -> Mapping[str, float | int]:
    """Return errors in percent."""
    names = ("mdape", "mape", "p90", "bias")
    return {name: round(100 * getattr(scores, name), 1) for name in names} | {"n": scores.n}


def _round(value: float) -> float:
    return float(f"{value:.4g}")


def _number(value: float) -> str:
    """Return a number as YAML 1.1 reads one: with a point in its mantissa."""
    mantissa, e, exponent = f"{value:.4g}".partition("e")
    return (mantissa if "." in mantissa else f"{mantissa}.0") + e + exponent
