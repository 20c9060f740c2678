"""The dashboard as a command that runs until it is told to end."""

from __future__ import annotations

import importlib.util
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

_START = "import sys; from servesim.cli import main; sys.exit(main(['dashboard', *sys.argv[1:]]))"

needs_dash = pytest.mark.skipif(
    importlib.util.find_spec("dash") is None, reason="needs dash, of the extra dashboard"
)


@contextmanager
def served(*arguments: str) -> Iterator[str]:
    """Start ``servesim dashboard`` on a free port, yield its address, and end it as Ctrl-C does.

    That it ends at once, without a word of complaint and with exit status 0, is asserted.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", _START, *arguments, "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        address = re.match(r"(http://127\.0\.0\.1:\d+/) ", process.stdout.readline())
        assert address is not None
        yield address[1]
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        assert (process.returncode, errors) == (0, "")
    finally:
        process.kill()
