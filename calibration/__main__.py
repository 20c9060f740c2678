"""``python -m calibration``: fit profiles, tell and draw their errors, check them against others' tables."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import perf_counter

from calibration.fit.profile import fit_profile
from calibration.independent import findings
from calibration.sources.aiconfigurator import VERSIONS
from calibration.sources.tidy import SourceError
from calibration.sources.wheel import Wheel
from calibration.tables import error_table, independent_table, projection_table

ROOT = Path(__file__).parents[1]
CALIBRATION = ROOT / "conf" / "calibration"
PAGES = ROOT / "build" / "calibration"


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
    fit.set_defaults(run=fit_profiles)
    errors = verbs.add_parser("errors", help="print the errors of the profiles")
    errors.set_defaults(run=print_errors)
    check = verbs.add_parser("check", help="compare profiles with timings by others")
    check.add_argument("data", type=Path, help="folder of the files of Vidur and LLMServingSim")
    check.set_defaults(run=print_check)
    report = verbs.add_parser("report", help="draw a page per profile from the installed package of timings")
    report.add_argument("--profiles", type=Path, default=CALIBRATION, help="folder of the profiles")
    report.add_argument("--out", type=Path, default=PAGES, help="folder of the pages (build/calibration)")
    report.set_defaults(run=write_pages)
    for verb in (fit, errors, check):
        verb.add_argument("--out", type=Path, default=CALIBRATION, help="folder of the profiles")
    for verb in (fit, report):
        verb.add_argument("--gpu", choices=sorted({gpu for gpu, _ in VERSIONS}), help="only this GPU")
        verb.add_argument(
            "--engine", choices=sorted({engine for _, engine in VERSIONS}), help="only this engine"
        )
    return parser


def fit_profiles(given: argparse.Namespace) -> None:
    """Fit the profiles of one GPU or all, of one engine or all, and write them."""
    wheel = Wheel.installed()
    given.out.mkdir(parents=True, exist_ok=True)
    for gpu, engine in VERSIONS:
        if given.gpu not in (None, gpu) or given.engine not in (None, engine):
            continue
        start = perf_counter()
        profile = fit_profile(wheel, gpu, engine)
        path = given.out / f"{profile.name}.yaml"
        path.write_text(profile.text())
        print(f"{path}: {len(profile.fits)} fits in {perf_counter() - start:.0f} s", flush=True)


def print_errors(given: argparse.Namespace) -> None:
    """Print the tables of errors of all profiles."""
    print(*error_table(given.out), "", *projection_table(given.out), sep="\n")


def print_check(given: argparse.Namespace) -> None:
    """Print the errors on independent tables."""
    print(*independent_table(findings(given.data, given.out)), sep="\n")


def write_pages(given: argparse.Namespace) -> None:
    """Write the page of one profile or of all."""
    from calibration.report.page import profile_page
    from calibration.report.scored import profiles, scored

    wheel = Wheel.installed()
    chosen = [
        said
        for said in profiles(given.profiles)
        if given.gpu in (None, said["gpu"]) and given.engine in (None, said["engine"])
    ]
    given.out.mkdir(parents=True, exist_ok=True)
    for said in chosen:
        path = given.out / f"{said['name']}.html"
        profile_page(said, scored(wheel, said)).write(path)
        print(path, flush=True)


if __name__ == "__main__":
    sys.exit(main())
