"""The installed package ``aiconfigurator-core``: where its tables of kernel timings lie, and their state."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pandas as pd

from calibration.sources.tidy import SourceError

PACKAGE = "aiconfigurator-core"

#: Our name of a GPU, and the folder of its tables.
SYSTEMS = {
    "h100-sxm": "h100_sxm",
    "h200-sxm": "h200_sxm",
    "a100-sxm-80gb": "a100_sxm",
    "b200-sxm": "b200_sxm",
    "l40s": "l40s",
    "rtx-pro-6000": "rtx_pro_6000_server",
}


@dataclass(frozen=True)
class Wheel:
    """The per-operation tables of one version of the package, below ``root`` (``.../systems/data``)."""

    root: Path
    version: str

    @classmethod
    def installed(cls) -> Wheel:
        """Return the tables of the installed package.

        Raises:
            SourceError: where it is not installed.
        """
        try:
            found = distribution(PACKAGE)
        except PackageNotFoundError:
            raise SourceError(
                f"the timings come from the package {PACKAGE}, which is not installed: "
                "from a clone, pip install -e '.[calibration]'"
            ) from None
        root = Path(str(found.locate_file("aiconfigurator_core/systems/data")))
        return cls(root, found.version)

    def path(self, gpu: str, operation: str, engine: str, version: str, name: str) -> Path | None:
        """Return the table of ``version`` or, where there is none, of the newest version before it."""
        folder = self.root / SYSTEMS[gpu] / operation / engine
        found = {path.parent.name: path for path in folder.glob(f"*/{name}.parquet")}
        usable = [each for each in found if _order(each) <= _order(version)]
        return found[max(usable, key=_order)] if usable else None

    def read(self, path: Path) -> pd.DataFrame:
        """Return the rows of a table; ``source`` is its path within the package."""
        return pd.read_parquet(path).assign(source=self.name(path))

    def name(self, path: Path) -> str:
        """Return the path of a table below the tables' root."""
        return path.relative_to(self.root).as_posix()

    def sha256(self, name: str) -> str:
        """Return the hash of a table by its name (see :meth:`name`)."""
        return hashlib.sha256((self.root / name).read_bytes()).hexdigest()


def _order(version: str) -> tuple[tuple[int, int], ...]:
    """Return what versions sort by: their numbers, release candidates before the release."""
    parts = re.findall(r"\d+|rc|post", version)
    ranks = {"rc": (-1, 0), "post": (1, 0)}
    return (*(ranks.get(part) or (0, int(part)) for part in parts), (0, -1))
