"""``python -m calibration``: time kernels, fit profiles, print their errors, compare with others' timings."""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

from rich.console import Console

from calibration.fit.profile import fit_profile
from calibration.independent import findings
from calibration.own import fit_own, unused
from calibration.sources.aiconfigurator import VERSIONS
from calibration.sources.tidy import SourceError
from calibration.sources.wheel import Wheel
from calibration.tables import error_table, independent_table, projection_table

CALIBRATION = Path(__file__).parents[1] / "conf" / "calibration"
MEASUREMENTS = Path("measurements")


def main(arguments: list[str] | None = None) -> int:
    """Run one verb; return the exit status."""
    given = _parser().parse_args(arguments)
    try:
        return given.run(given) or 0
    except SourceError as problem:
        print(problem, file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m calibration", description=__doc__)
    verbs = parser.add_subparsers(required=True)
    measure = verbs.add_parser("measure", help="time kernels on this machine's GPU")
    measure.add_argument(
        "--budget", type=float, default=1.0, help="1: at most ten minutes; scales the shapes"
    )
    measure.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: tries the runner")
    measure.add_argument(
        "--out", type=Path, default=MEASUREMENTS, help="folder of the tables, to be continued"
    )
    measure.set_defaults(run=measure_kernels)
    fit = verbs.add_parser("fit", help="fit profiles to the installed package of timings")
    fit.add_argument("--gpu", choices=sorted({gpu for gpu, _ in VERSIONS}), help="only this GPU")
    fit.add_argument("--engine", choices=sorted({engine for _, engine in VERSIONS}), help="only this engine")
    fit.add_argument("--measurements", type=Path, metavar="DIR", help="fit to the tables of measure instead")
    fit.set_defaults(run=fit_profiles)
    errors = verbs.add_parser("errors", help="print the errors of the profiles")
    errors.set_defaults(run=print_errors)
    check = verbs.add_parser("check", help="compare profiles with timings by others")
    check.add_argument("data", type=Path, help="folder of the files of Vidur and LLMServingSim")
    check.set_defaults(run=print_check)
    for verb in (fit, errors, check):
        verb.add_argument("--out", type=Path, default=CALIBRATION, help="folder of the profiles")
    return parser


def measure_kernels(given: argparse.Namespace) -> int:
    """Time the kernels of a plan; return the exit status.

    Raises:
        SourceError: where torch is not installed, or as :func:`calibration.measure.run.measure` does.
    """
    if find_spec("torch") is None:
        raise SourceError("timing takes torch, which is not installed: pip install 'servesim[measure]'")
    from calibration.measure.run import measure

    return measure(given.out, given.device, given.budget, Console())


def fit_profiles(given: argparse.Namespace) -> None:
    """Fit the profiles of one GPU or all, of one engine or all, and write them."""
    if given.measurements:
        _fit_measurements(given)
        return
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


def _fit_measurements(given: argparse.Namespace) -> None:
    """Fit a profile to own measurements and write it."""
    if given.gpu or given.engine:
        raise SourceError(
            "--measurements: the tables say which GPU and engine they are of; leave out --gpu, --engine"
        )
    profile = fit_own(given.measurements)
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / f"{profile.name}.yaml"
    path.write_text(profile.text())
    print(*unused(profile), f"{path}: {len(profile.fits)} fits", sep="\n")


def print_errors(given: argparse.Namespace) -> None:
    """Print the tables of errors of all profiles."""
    print(*error_table(given.out), "", *projection_table(given.out), sep="\n")


def print_check(given: argparse.Namespace) -> None:
    """Print the errors on independent tables."""
    print(*independent_table(findings(given.data, given.out)), sep="\n")


if __name__ == "__main__":
    sys.exit(main())
