"""``python -m calibration``: fit profiles, print their errors, check them against independent tables.

``overhead``, ``power`` and ``transfer`` fit the terms of measured runs, which lie in a folder of data.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from calibration.conf import CONF
from calibration.fit.profile import fit_profiles
from calibration.independent import findings
from calibration.overhead import fit_overheads
from calibration.power import fit_power, power_table
from calibration.sources.aiconfigurator import VERSIONS
from calibration.sources.tidy import SourceError
from calibration.sources.wheel import Wheel
from calibration.tables import error_table, independent_table, projection_table
from calibration.terms import term_table
from calibration.transfer import fit_transfer, transfer_table

CALIBRATION = CONF / "calibration"


class Terms(NamedTuple):
    """Terms fitted on measured runs: their group in ``conf``, what they say, how they are fitted."""

    group: str
    about: str
    fit: Callable[[Path, Path], list[Path]]
    table: Callable[[Path], Iterator[str]] | None = None


TERMS = {
    "overhead": Terms("engine_overhead", "what engines add to their kernels", fit_overheads),
    "power": Terms("board_power", "what the shares of peak weigh in board power", fit_power, power_table),
    "transfer": Terms("transfer_overhead", "what KV transfers lose on the way", fit_transfer, transfer_table),
}


def main(arguments: list[str] | None = None) -> int:
    """Run one verb; return the exit status."""
    given = _parser().parse_args(arguments)
    try:
        given.run(given)
    except SourceError as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m calibration", description=__doc__)
    verbs = parser.add_subparsers(required=True)
    fit = verbs.add_parser("fit", help="fit profiles to the installed package of timings")
    fit.add_argument("--gpu", choices=sorted({gpu for gpu, _ in VERSIONS}), help="only this GPU")
    fit.add_argument("--engine", choices=sorted({engine for _, engine in VERSIONS}), help="only this engine")
    fit.set_defaults(run=write_profiles)
    errors = verbs.add_parser("errors", help="print the errors of the profiles")
    errors.set_defaults(run=print_errors)
    check = verbs.add_parser("check", help="compare profiles with timings by others")
    check.add_argument("data", type=Path, help="folder of the files of Vidur and LLMServingSim")
    check.set_defaults(run=print_check)
    for verb in (fit, errors, check):
        verb.add_argument("--out", type=Path, default=CALIBRATION, help="folder of the profiles")
    for name, terms in TERMS.items():
        verb = verbs.add_parser(name, help=f"fit to measured runs {terms.about}")
        verb.add_argument("--data", type=Path, required=True, help="folder of the measured runs")
        verb.add_argument("--out", type=Path, default=CONF / terms.group, help="folder of the files")
        verb.set_defaults(run=fit_terms, terms=terms)
    return parser


def write_profiles(given: argparse.Namespace) -> None:
    """Fit the profiles of one GPU or all, of one engine or all, and write them."""
    start = perf_counter()
    given.out.mkdir(parents=True, exist_ok=True)
    names = [
        (gpu, engine)
        for gpu, engine in VERSIONS
        if given.gpu in (None, gpu) and given.engine in (None, engine)
    ]
    for profile in fit_profiles(Wheel.installed(), names):
        path = given.out / f"{profile.name}.yaml"
        path.write_text(profile.text())
        print(f"{path}: {len(profile.fits)} fits, {perf_counter() - start:.0f} s so far", flush=True)


def fit_terms(given: argparse.Namespace) -> None:
    """Fit terms to measured runs, write their files, and print what was fitted and how far off it is."""
    files = given.terms.fit(given.data, given.out)
    print(*files, "", *term_table(files), sep="\n")
    if given.terms.table:
        print("", *given.terms.table(given.data), sep="\n")


def print_errors(given: argparse.Namespace) -> None:
    """Print the tables of errors of all profiles."""
    print(*error_table(given.out), "", *projection_table(given.out), sep="\n")


def print_check(given: argparse.Namespace) -> None:
    """Print the errors on independent tables."""
    print(*independent_table(findings(given.data, given.out)), sep="\n")


if __name__ == "__main__":
    sys.exit(main())
