"""``python -m calibration``: fit profiles, print their errors, and check them against independent tables."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import perf_counter

from calibration.fit.profile import fit_profile
from calibration.sources.aiconfigurator import VERSIONS
from calibration.sources.tidy import SourceError
from calibration.sources.wheel import Wheel

CALIBRATION = Path(__file__).parents[1] / "conf" / "calibration"


def main(arguments: list[str] | None = None) -> int:
    """Run one verb; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m calibration", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    fit = verbs.add_parser("fit", help="fit profiles from the installed package of timings")
    fit.add_argument("--gpu", choices=sorted({gpu for gpu, _ in VERSIONS}), help="only this GPU")
    fit.add_argument("--engine", choices=sorted({engine for _, engine in VERSIONS}), help="only this engine")
    fit.add_argument("--out", type=Path, default=CALIBRATION, help="folder of the profiles")
    given = parser.parse_args(arguments)
    try:
        fit_profiles(given.gpu, given.engine, given.out)
    except SourceError as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


def fit_profiles(gpu: str | None, engine: str | None, out: Path) -> None:
    """Fit the profiles of one GPU or all, of one engine or all, and write them."""
    wheel = Wheel.installed()
    out.mkdir(parents=True, exist_ok=True)
    for each_gpu, each_engine in VERSIONS:
        if gpu not in (None, each_gpu) or engine not in (None, each_engine):
            continue
        start = perf_counter()
        profile = fit_profile(wheel, each_gpu, each_engine)
        path = out / f"{profile.name}.yaml"
        path.write_text(profile.text())
        print(f"{path}: {len(profile.fits)} fits in {perf_counter() - start:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
