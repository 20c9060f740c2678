"""The verb ``servesim dashboard``: what-ifs in the browser, for this machine alone unless told otherwise."""

from __future__ import annotations

import argparse
import logging
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Thread
from typing import Any

from servesim.arguments import Arguments
from servesim.check import ConfigError, Problem

_HELP = """\
servesim dashboard [FOLDER] [options]: what-ifs that answer while you move the controls, in your browser.

  servesim dashboard                      what-ifs
  servesim dashboard sweeps               and the sweeps in this folder, under other limits and prices
  servesim dashboard runs --port 9000     and the runs in this one

  FOLDER         where sweeps (sweep.parquet) or runs (summary.json) lie, at any depth
  --port P       the port to listen at (8050); 0: any that is free
  --host H       the address to listen at (127.0.0.1: only this machine can connect)

It needs Dash: pip install -e '.[dashboard]' in a clone. Ctrl-C ends it.
"""
_LOCAL, _PORT = "127.0.0.1", 8050


def dashboard(arguments: Sequence[str]) -> int:
    """Serve the dashboard that ``arguments`` (those after the verb) ask for, until Ctrl-C.

    Raises:
        ConfigError: listing what is wrong with the input, or that Dash is not installed.

    """
    options = _parser().parse_args(arguments)
    if options.help:
        print(_HELP)
        return 0
    if find_spec("dash") is None:
        raise ConfigError(
            [Problem("dashboard", None, "needs Dash: pip install -e '.[dashboard]' in a clone")]
        )
    from servesim.report.dashboard.app import create_app
    from servesim.report.dashboard.loaded import load_folder
    from servesim.report.dashboard.state import State
    from servesim.report.dashboard.whatif import WhatIfs

    loaded = load_folder(options.folder, _tell_left_out) if options.folder else {}
    with _listening(options.host, options.port) as listening, _interruption() as interrupted:
        whatifs, state = WhatIfs(), State()
        whatifs.ask(state.overrides(state.a))
        app = create_app(loaded, whatifs)
        host, port = listening.getsockname()[:2]
        print(f"http://{_address(host)}:{port}/ (Ctrl-C ends it)", flush=True)
        _serve(app.server, listening, interrupted)
    return 0


@contextmanager
def _interruption() -> Iterator[Event]:
    """Yield what Ctrl-C sets, however often it is pressed.

    An exception would be lost where Python was just calling a finalizer: those have nobody to raise it to.
    A process that ignores Ctrl-C, such as one in the background of a script, goes on ignoring it.
    """
    interrupted = Event()
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda number, frame: interrupted.set())
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)


def _address(host: str) -> str:
    """Return how a browser on this machine names the address that is listened at."""
    at_all = {"0.0.0.0": _LOCAL, "::": "::1"}
    known = at_all.get(host, host)
    return f"[{known}]" if ":" in known else known


def _tell_left_out(problem: Problem) -> None:
    print(f"left out: {problem}", file=sys.stderr)


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens.

    Raises:
        ConfigError: the address cannot be had.
    """
    if not host:
        raise ConfigError([Problem("--host", host, "is no address; 0.0.0.0 listens at all of them")])
    try:
        family = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        reason = str(getattr(error, "strerror", None) or error).partition(" (while")[0]
        message = f"cannot be listened at ({reason}); choose another --port"
        raise ConfigError([Problem(f"{host}:{port}", None, message)]) from error


def _serve(application: Any, listening: socket.socket, interrupted: Event) -> None:
    """Answer requests until Ctrl-C."""
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    host, port = listening.getsockname()[:2]
    server = make_server(host, port, application, threaded=True, fd=listening.fileno())

    def end() -> None:
        interrupted.wait()
        server.shutdown()

    Thread(target=end, daemon=True).start()
    server.serve_forever()


def _parser() -> argparse.ArgumentParser:
    parser = Arguments("servesim dashboard")
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--port", type=int, default=_PORT)
    parser.add_argument("--host", default=_LOCAL)
    parser.add_argument("-h", "--help", action="store_true")
    return parser
