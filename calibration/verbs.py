"""What ``python -m calibration`` can be asked for: a function of its options for each verb."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from rich.console import Console

from calibration.fit.profile import fit_profiles
from calibration.independent import findings
from calibration.overhead import fit_overheads
from calibration.own import fit_own, unused
from calibration.power import fit_power, power_table
from calibration.sources.aiconfigurator import VERSIONS
from calibration.sources.tidy import SourceError
from calibration.sources.wheel import Wheel
from calibration.tables import error_table, independent_table, projection_table
from calibration.terms import term_table
from calibration.transfer import fit_transfer, transfer_table


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


def measure_kernels(given: argparse.Namespace) -> int:
    """Time the kernels of a plan; return the exit status.

    Raises:
        SourceError: where torch is not installed, or as :func:`calibration.measure.run.measure` does.
    """
    if find_spec("torch") is None:
        raise SourceError(
            "timing takes torch, which is not installed: from a clone, pip install -e '.[measure]'"
        )
    from calibration.measure.run import measure

    return measure(given.out, given.device, given.budget, Console())


def write_profiles(given: argparse.Namespace) -> None:
    """Fit the profiles of one GPU or all, of one engine or all, and write them."""
    if given.measurements:
        _write_own_profile(given)
        return
    start = perf_counter()
    given.out.mkdir(parents=True, exist_ok=True)
    names = [(gpu, engine) for gpu, engine in VERSIONS if _is_asked(gpu, engine, given)]
    for profile in fit_profiles(Wheel.installed(), names):
        path = given.out / f"{profile.name}.yaml"
        path.write_text(profile.text())
        print(f"{path}: {len(profile.fits)} fits, {perf_counter() - start:.0f} s so far", flush=True)


def _write_own_profile(given: argparse.Namespace) -> None:
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


def write_pages(given: argparse.Namespace) -> None:
    """Write the page of one profile or of all."""
    from calibration.report.page import profile_page
    from calibration.report.scored import profiles, scored

    wheel = Wheel.installed()
    given.out.mkdir(parents=True, exist_ok=True)
    for said in profiles(given.profiles):
        if _is_asked(said["gpu"], said["engine"], given):
            path = given.out / f"{said['name']}.html"
            profile_page(said, scored(wheel, said)).write(path)
            print(path, flush=True)


def _is_asked(gpu: str, engine: str, given: argparse.Namespace) -> bool:
    return given.gpu in (None, gpu) and given.engine in (None, engine)
