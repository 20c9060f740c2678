"""``python -m calibration``: fit profiles, print their errors, and check them against independent tables."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import perf_counter

from calibration.fit.profile import fit_profiles
from calibration.independent import findings
from calibration.sources.aiconfigurator import VERSIONS
from calibration.sources.tidy import SourceError
from calibration.sources.wheel import Wheel
from calibration.tables import error_table, independent_table, projection_table

CALIBRATION = Path(__file__).parents[1] / "conf" / "calibration"


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


def print_errors(given: argparse.Namespace) -> None:
    """Print the tables of errors of all profiles."""
    print(*error_table(given.out), "", *projection_table(given.out), sep="\n")


def print_check(given: argparse.Namespace) -> None:
    """Print the errors on independent tables."""
    print(*independent_table(findings(given.data, given.out)), sep="\n")


if __name__ == "__main__":
    sys.exit(main())
