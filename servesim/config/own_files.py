"""What is wrong with the files of a folder of the user's own, where Hydra does not say which it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml

from servesim.check import Problem

_NAMES_ITSELF = (
    "names itself in its defaults: a file of your own stands in place of the shipped one of the same name "
    "and cannot build on it; give it another name"
)


def file_problems(folder: Path) -> Iterator[Problem]:
    """Yield the files below a folder that are no text, no YAML, or among their own defaults."""
    for path in sorted(folder.rglob("*.yaml")):
        try:
            values = yaml.safe_load(path.read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            yield Problem(str(path), None, "is not text in UTF-8")
        except OSError as error:
            yield Problem(str(path), None, error.strerror or str(error))
        except yaml.YAMLError as error:
            yield Problem(str(path), None, f"is not YAML: {' '.join(str(error).split())}")
        else:
            defaults = values.get("defaults") if isinstance(values, dict) else None
            group = path.parent.relative_to(folder).as_posix()
            itself = (path.stem, f"/{group}/{path.stem}")
            if isinstance(defaults, list) and any(entry in itself for entry in defaults):
                yield Problem(str(path), None, _NAMES_ITSELF)
