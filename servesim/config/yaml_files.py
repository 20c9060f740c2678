"""How YAML files are read for Hydra: by the parser written in C, and each file once.

Hydra's own source of files parses them in Python, anew for every composition, of which its command line makes
two: a third of a composition is reading. It has no setting for that, so :class:`ReadOnce` stands in its place
while servesim composes. What it returns is what Hydra's returns; what is odd is left to Hydra's, for what it
says of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra._internal.sources_registry import SourcesRegistry
from hydra.plugins.config_source import ConfigResult
from omegaconf import OmegaConf
from omegaconf._utils import get_yaml_loader

_HEADER = 512  # letters of a file among which Hydra looks for its package
_TEXT = yaml.resolver.BaseResolver.DEFAULT_SCALAR_TAG


class FileState(NamedTuple):
    """What is another once a file has been written."""

    path: str
    changed_ns: int
    moved_ns: int
    size: int

    @classmethod
    def of(cls, path: str, stat: os.stat_result) -> FileState:
        """Return the state of a file from what the system says of it."""
        return cls(path, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size)


class File(NamedTuple):
    """What a file says: its ``text``, and the mapping that it is."""

    text: str
    values: dict[str, Any]


def read(path: Path) -> File | None:
    """Return what a YAML file says, read once for as long as it does not change.

    It is None where it cannot be read, or holds no mapping. Its values are as OmegaConf reads them (``1e-1``
    is a number, a date is text), and are not to be changed.
    """
    try:
        return _read(FileState.of(str(path), path.stat()))
    except (OSError, UnicodeDecodeError, RecursionError, ValueError, yaml.YAMLError):
        return None


@lru_cache(maxsize=512)
def _read(state: FileState) -> File | None:
    text = Path(state.path).read_text(encoding="utf-8")
    values = yaml.load(text, Loader=_Loader)
    return File(text, values) if isinstance(values, dict) else None


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """OmegaConf's loader, in C where PyYAML has it."""

    yaml_implicit_resolvers = get_yaml_loader().yaml_implicit_resolvers

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> Any:
        """Return a mapping whose keys differ."""
        keys = [key.value for key, _ in node.value if key.tag == _TEXT]
        if len(set(keys)) < len(keys):
            raise yaml.YAMLError("some key is there twice")
        return super().construct_mapping(node, deep=deep)


class ReadOnce(FileConfigSource):
    """Hydra's source of files, but that a file is read again only when it has changed."""

    def load_config(self, config_path: str) -> ConfigResult:
        """Return what a file says."""
        path = Path(self.path, self._normalize_file_name(config_path)).resolve()
        file = read(path)
        if file is None:
            return super().load_config(config_path)
        return ConfigResult(
            config=OmegaConf.create(file.values),
            path=f"{self.scheme()}://{self.path}",
            provider=self.provider,
            header=self._get_header_dict(file.text[:_HEADER]),
        )


@contextmanager
def files_read_once() -> Iterator[None]:
    """Let Hydra read files by :class:`ReadOnce` while the context lasts."""
    sources, scheme = SourcesRegistry.instance().types, ReadOnce.scheme()
    before = sources[scheme]
    sources[scheme] = ReadOnce
    try:
        yield
    finally:
        sources[scheme] = before
