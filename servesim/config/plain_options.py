"""Options that are plain files: choosing another one of them needs no new composition.

Most options (a GPU, a model, lengths) are a file of values for one place, and nothing else. Where that can be
seen from the files, putting the values there gives what Hydra composes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from servesim.config.groups import Groups
from servesim.config.yaml_files import read


class PlainOptions:
    """The options of some folders whose files say all that choosing them does."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        self._known: dict[tuple[str, str], Mapping[str, Any] | None] = {}

    def values(self, group: str, option: str) -> Mapping[str, Any] | None:
        """Return the values of an option; None where its file asks Hydra for more, or another one follows it.

        More is a list of defaults, another package, values of other keys, or groups inside the group.
        """
        if (group, option) not in self._known:
            self._known[group, option] = self._read(group, option)
        return self._known[group, option]

    def _read(self, group: str, option: str) -> Mapping[str, Any] | None:
        folders = [folder / group for folder in self._groups.folders]
        inside = any(path.is_dir() for folder in folders if folder.is_dir() for path in folder.iterdir())
        path = next((path for folder in folders if (path := folder / f"{option}.yaml").is_file()), None)
        if inside or path is None or f"${{{group}" in self._defaults:
            return None
        file = read(path)
        if file is None or "@package" in file.text or "${" in file.text or "defaults" in file.values:
            return None
        return file.values

    @cached_property
    def _defaults(self) -> str:
        """The file that says which option of each group is taken, and which follow another one."""
        files = (folder / "config.yaml" for folder in self._groups.folders)
        return next(file for file in files if file.is_file()).read_text(encoding="utf-8")
