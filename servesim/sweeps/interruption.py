"""Ctrl-C, where several processes are at work."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def left_to_this_process() -> Iterator[None]:
    """Keep Ctrl-C, which a terminal sends to all processes, from those that are started meanwhile.

    They inherit that it is blocked; each by itself would end with a traceback, wherever it just was. This
    process ends them: it hears of a Ctrl-C at the end, if not before.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield  # Windows has no such masks
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
