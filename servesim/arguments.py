"""Options of a command line, read as any other input: what is wrong with them is a problem of the input."""

from __future__ import annotations

import argparse
from typing import NoReturn

from servesim.check import ConfigError, Problem


class Arguments(argparse.ArgumentParser):
    """Reads the options of ``prog``, which has a help of its own; names of options are not guessed.

    Raises:
        ConfigError: an option is unknown, or its value is of another kind.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog=prog, add_help=False, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Raise what is wrong, with the place of the help."""
        raise ConfigError([Problem("", None, f"{message}; see {self.prog} --help")])
