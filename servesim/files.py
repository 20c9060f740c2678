"""Files that are there as a whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex


@contextmanager
def in_one_go(path: Path) -> Iterator[Path]:
    """Give the place of a file to be written, which then takes the place of ``path``; its folder is made.

    Whoever reads ``path`` finds what was there before or all that is new, also when the writing ends early
    or two write at once. What is no regular file, such as a pipe, is written as it stands.

    Raises:
        OSError: what happened, with the name of ``path``.
    """
    target = path.resolve()
    special = target.exists() and not (target.is_file() or target.is_dir())
    beside = target if special else target.with_name(f".{os.getpid()}-{token_hex(4)}.{target.name}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield beside
        if not special:
            beside.replace(target)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        if not special and target.parent.is_dir():
            beside.unlink(missing_ok=True)
