"""Where the configuration files are, and which options each group offers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from servesim.check import ConfigError, Problem
from servesim.config.names import is_slip, nearest, words
from servesim.words import listed


def conf_dir() -> Path:
    """Return the folder of the shipped configuration files.

    In an installed package they lie inside it; in a clone, beside it.
    """
    package = Path(__file__).resolve().parents[1]
    inside = package / "conf"
    return inside if inside.is_dir() else package.parent / "conf"


_GROUP = re.compile(r"\w+(/\w+)*")


class Groups:
    """The groups of options that some folders offer, such as ``gpu`` or ``workload/arrivals``.

    A group is a folder, and each YAML file in it an option; of two files of one name, that of the first
    folder counts.
    """

    def __init__(self, folders: Iterable[Path]) -> None:
        self.folders = tuple(folders)

    @classmethod
    def of(cls, config_dir: Path | None, config_name: str | None = None) -> Groups:
        """Return the groups of a folder of the user's own, which comes first, and of ``conf/``.

        The folder adds to a group, or has a configuration named ``config_name`` that stands for the whole.

        Raises:
            ConfigError: where there is no such folder, or nothing in it that adds to a group.
        """
        if config_dir is None:
            return cls([conf_dir()])
        if not config_dir.is_dir():
            raise ConfigError([Problem("config_dir", str(config_dir), "there is no such folder")])
        named = config_name is not None and (config_dir / f"{config_name}.yaml").is_file()
        if not named and not any(cls([config_dir]).options(group) for group in cls([conf_dir()]).names()):
            message = "holds no options: they lie in folders named as their groups, such as gpu/mine.yaml"
            raise ConfigError([Problem("config_dir", str(config_dir), message)])
        return cls([config_dir, conf_dir()])

    def __contains__(self, group: str) -> bool:
        named = _GROUP.fullmatch(group) is not None
        return named and any((folder / group).is_dir() for folder in self.folders)

    def names(self) -> list[str]:
        """Return the names of all groups, in order."""
        return sorted(
            {
                path.relative_to(folder).as_posix()
                for folder in self.folders
                for path in folder.rglob("*")
                if path.is_dir()
            }
        )

    def options(self, group: str) -> list[str]:
        """Return the names of the options of a group, in order."""
        files = (path for folder in self.folders for path in (folder / group).glob("*.yaml"))
        return sorted({path.stem for path in files})

    def problem(self, key: str, option: str) -> Problem | None:
        """Say why ``key=option`` chooses nothing, or return None where it does choose something.

        ``key`` is a group, or ``group@place`` as Hydra writes a choice for another place.
        """
        group = key.partition("@")[0]
        if group not in self:
            alike = [name for name in self.names() if name.rpartition("/")[2] == group.rpartition("/")[2]]
            meant = listed(alike) if alike else nearest(group, self.names())
            hint = f"; did you mean {meant}?" if meant else ""
            return Problem(key, option, f"there is no such group of options{hint}")
        known = self.options(group)
        folder, _, name = f"{group}/{option}".rpartition("/")
        if folder in self and name in self.options(folder):
            return None
        if option in ("", "null"):
            return Problem(key, None, f"needs an option; they are {listed(known)}")
        close = nearest(option, known)
        if close and is_slip(option, close):
            return Problem(key, option, f"there is no such option; did you mean {close}?")
        close = close or next((name for name in known if words(option) <= words(name)), None)
        hint = f" (nearest: {close})" if close else ""
        return Problem(key, option, f"there is no such option; they are {listed(known)}{hint}")
