"""A question to a process of its own: a module of this study, started afresh.

Peak memory is then that of the answer alone. Linux hands a process's peak on to its children, so whoever
asks must be lean, too: nothing here imports more than the standard library.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any


def ask(module: str, **question: Any) -> Any:
    """Start ``experiments.speed.<module>`` with the arguments of its function; return what that returned."""
    arguments = [sys.executable, "-m", f"experiments.speed.{module}", json.dumps(question)]
    done = subprocess.run(arguments, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def answer(function: Callable[..., Any]) -> None:
    """Call ``function`` with the arguments that this process was started with, and print its result."""
    print(json.dumps(function(**json.loads(sys.argv[1]))))
