"""Where Hydra looks for configuration files: in a folder of the user's own first, and then in ``conf/``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from hydra.core.config_search_path import ConfigSearchPath, SearchPathQuery
from hydra.core.plugins import Plugins
from hydra.plugins.search_path_plugin import SearchPathPlugin

from servesim.config.yaml_files import files_read_once

_first: ContextVar[Path | None] = ContextVar("first", default=None)


class OwnFolderFirst(SearchPathPlugin):
    """Puts the user's folder before the main one: Hydra takes a file from the first folder that has it.

    Its own ``--config-dir`` and ``hydra.searchpath`` come after the main folder.
    """

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Add the folder, where one has been named."""
        folder = _first.get()
        if folder is not None:
            search_path.prepend("own", f"file://{folder}", SearchPathQuery(provider="main"))


@contextmanager
def own_folder_first(folder: Path | None) -> Iterator[None]:
    """Let Hydra look into a folder first while the context lasts; None: only where it looks by itself.

    It reads no file again that has not changed.
    """
    plugins = Plugins.instance()
    if OwnFolderFirst not in plugins.discover(SearchPathPlugin):
        plugins.register(OwnFolderFirst)
    token = _first.set(folder and folder.resolve())
    try:
        with files_read_once():
            yield
    finally:
        _first.reset(token)
