"""``python -m calibration``: time kernels, fit profiles and terms, tell and draw how far off they are."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from calibration import verbs
from calibration.conf import CONF
from calibration.sources.aiconfigurator import VERSIONS
from calibration.sources.tidy import SourceError

CALIBRATION = CONF / "calibration"
PAGES = CONF.parent / "build" / "calibration"
MEASUREMENTS = Path("measurements")


def main(arguments: list[str] | None = None) -> int:
    """Run one verb; return the exit status."""
    try:
        given = _parser().parse_args(arguments)
        return given.run(given) or 0
    except SourceError as problem:
        print(problem, file=sys.stderr)
    except OSError as problem:
        place = f"{problem.filename}: " if problem.filename else ""
        print(f"{place}{problem.strerror or problem}", file=sys.stderr)
    return 1


class _Parser(argparse.ArgumentParser):
    """Raises what is wrong with the options as any other error in the input."""

    def error(self, message: str) -> NoReturn:
        raise SourceError(f"{message}; see {self.prog} --help")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m calibration", description=__doc__)
    add = _adder(parser.add_subparsers(required=True, metavar="VERB"))
    measure = add("measure", verbs.measure_kernels, "time kernels on this machine's GPU", MEASUREMENTS)
    measure.add_argument(
        "--budget", type=float, default=1.0, help="1: at most ten minutes; more shapes or fewer"
    )
    measure.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: tries the runner")
    fit = add("fit", verbs.write_profiles, "fit profiles to the installed package of timings", CALIBRATION)
    fit.add_argument("--measurements", type=Path, metavar="DIR", help="fit to the tables of measure instead")
    add("errors", verbs.print_errors, "print the errors of the profiles", CALIBRATION)
    check = add("check", verbs.print_check, "compare profiles with timings by others", CALIBRATION)
    check.add_argument("data", type=Path, help="folder of the files of Vidur and LLMServingSim")
    report = add("report", verbs.write_pages, "draw a page per profile from the package of timings", PAGES)
    report.add_argument("--profiles", type=Path, default=CALIBRATION, help="folder of the profiles")
    for verb in (fit, report):
        verb.add_argument("--gpu", choices=sorted({gpu for gpu, _ in VERSIONS}), help="only this GPU")
        engines = sorted({engine for _, engine in VERSIONS})
        verb.add_argument("--engine", choices=engines, help="only this engine")
    for name, terms in verbs.TERMS.items():
        verb = add(name, verbs.fit_terms, f"fit to measured runs {terms.about}", CONF / terms.group)
        verb.add_argument("--data", type=Path, required=True, help="folder of the measured runs")
        verb.set_defaults(terms=terms)
    return parser


def _adder(subparsers: Any) -> Callable[..., argparse.ArgumentParser]:
    """Return what adds a verb, its function, its help and the folder that it reads or writes."""

    def add(
        name: str, run: Callable[[argparse.Namespace], int | None], about: str, out: Path
    ) -> argparse.ArgumentParser:
        verb: argparse.ArgumentParser = subparsers.add_parser(name, help=about)
        where = out.relative_to(CONF.parent) if out.is_relative_to(CONF.parent) else out
        verb.add_argument("--out", type=Path, default=out, help=f"folder of the files ({where})")
        verb.set_defaults(run=run)
        return verb

    return add


if __name__ == "__main__":
    sys.exit(main())
