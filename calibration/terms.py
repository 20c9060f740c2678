"""Files of terms that were fitted on measured runs: a few numbers, and where they are from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from calibration.fit.errors import Errors


def number(value: float) -> str:
    """Return a number of four digits as YAML 1.1 reads one: with a point in its mantissa."""
    mantissa, e, exponent = f"{value:.4g}".partition("e")
    return (mantissa if "." in mantissa else f"{mantissa}.0") + e + exponent


def provenance(said: Mapping[str, Any]) -> str:
    """Return the block that tells what was fitted, on what, and how far off it is."""
    return str(yaml.safe_dump({"provenance": dict(said)}, sort_keys=False, width=110))


def term_table(files: Iterable[Path]) -> Iterator[str]:
    """Yield a row per file: its terms, and its errors beside those of nothing fitted."""
    yield "| file | terms | split | n | fitted | held out | held out, nothing fitted |"
    yield "|---|---|---|---|---|---|---|"
    for path in files:
        said = yaml.safe_load(path.read_text())
        told = said["provenance"]
        (unfitted,) = (key for key in told if key.startswith("held_out_"))
        terms = ", ".join(f"{key} {number(value)}" for key, value in said.items() if isinstance(value, float))
        fitted, held_out, nothing = (Errors(**told[key]) for key in ("fitted", "held_out", unfitted))
        counts = f"{fitted.n} + {held_out.n}"
        name = f"{path.parent.name}/{path.stem}"
        cells = (name, terms, told["split"], counts, fitted, held_out, nothing)
        yield f"| {' | '.join(map(str, cells))} |"
