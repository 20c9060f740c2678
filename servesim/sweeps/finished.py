"""Telling that a sweep has been finished and is still true, without making a single scenario."""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

from servesim import __version__
from servesim.config.groups import Groups
from servesim.files import in_one_go
from servesim.sweeps.point import file_digest
from servesim.sweeps.study import Study
from servesim.sweeps.table import NAME as TABLE

#: The file in the folder of a sweep.
NAME = "finished.json"


class Finished:
    """A mark in a folder: which study its table is of, and all that the table was made from.

    That is the study, servesim's version, every file that a configuration can be composed from, and the
    files that its points name: traces, and descriptions of models and of engines. Where one of them has
    changed, the sweep is gone through point by point.
    """

    def __init__(self, folder: Path, study: Study, groups: Groups) -> None:
        self._folder, self._study, self._groups = folder, study, groups

    def holds(self) -> bool:
        """Tell whether the table in the folder is that of the study, and everything is as it was."""
        try:
            said = json.loads((self._folder / NAME).read_text())
            return bool(said == self._mark(said["made_from"]["files"]))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return False

    def write(self, files: Iterable[str]) -> None:
        """Mark the table as finished."""
        text = json.dumps(self._mark(sorted(files)), indent=2) + "\n"
        with in_one_go(self._folder / NAME) as beside:
            beside.write_text(text)

    def remove(self) -> None:
        """Take the mark away."""
        (self._folder / NAME).unlink(missing_ok=True)

    def _mark(self, files: Iterable[str]) -> dict[str, object]:
        whole = blake2b(json.dumps(self._study.as_dict(), sort_keys=True).encode(), digest_size=16)
        whole.update(str(self._groups.folders[:-1]).encode())  # commands name the user's own
        for folder in self._groups.folders:
            for path in sorted(folder.rglob("*.yaml")):
                whole.update(str(path.relative_to(folder)).encode() + path.read_bytes())
        return {
            "made_from": {
                "version": __version__,
                "study_and_options": whole.hexdigest(),
                "files": {path: file_digest(Path(path)).hex() for path in files},
            },
            "table": file_digest(self._folder / TABLE).hex(),
        }
