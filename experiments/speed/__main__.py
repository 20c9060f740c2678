"""Measure how fast servesim is, and print tables of it."""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict

from experiments.speed import machine, tables
from experiments.speed.cases import CASES, USUAL, Case
from experiments.speed.child import ask
from experiments.speed.command import command
from experiments.speed.sample import Sample, Series

REQUESTS, REPEAT = 20_000, 3
LEAST_REQUESTS = 10
QUICK_REQUESTS, QUICK_REPEAT = 2_000, 1
#: Sizes of the runs from the command line, as multiples of the requests of a case: 1e4, 1e5 and 1e6.
SIZES = (0.5, 5, 50)
MOST_OVERLOADED = 10_000  # requests of a run that only looks for the saturation throughput
COMMAND, OTHER = "command", "sched-sim"

Samples = dict[str, list[Sample]]
Saturation = dict[tuple[str, ...], float]


def main() -> None:
    """Measure what the command line asks for, and print it."""
    options = _options()
    chosen = [case for case in CASES if _is_asked(case.key, options)]
    if _is_asked(OTHER, options) and USUAL not in chosen:
        chosen.append(USUAL)
    sizes = _sizes(options.requests) if _is_asked(COMMAND, options) else []
    print(machine.describe(), end="\n\n", flush=True)
    saturation = _saturation([*chosen, USUAL], options.requests)
    samples: Samples = defaultdict(list)
    for turn in range(options.repeat):  # each round goes through all cases, so that noise hits them alike
        _say(f"round {turn + 1} of {options.repeat}")
        for case in chosen:
            samples[case.name].append(_measure(case, saturation, options.requests))
            if case is USUAL and _is_asked(OTHER, options) and machine.installed(OTHER):
                samples[OTHER].append(_measure_other(saturation, options.requests))
        for size in sizes:
            samples[str(size)].append(_measure_command(saturation, size))
    series = {name: Series(found) for name, found in samples.items()}
    if chosen:
        print(tables.cases({case.name: series[case.name] for case in chosen}))
    if sizes:
        print(f"\nFrom the command line: {USUAL.name}\n")
        print(tables.sizes([series[str(size)] for size in sizes]))
    if _is_asked(OTHER, options):
        _print_comparison(series)


def _print_comparison(series: dict[str, Series]) -> None:
    if OTHER in series:
        print(f"\nThe same requests in {OTHER}: {USUAL.name}\n")
        print(tables.comparison("servesim", series[USUAL.name], OTHER, series[OTHER]))
    else:
        print(f"\n{OTHER} is not installed: pip install -r experiments/speed/requirements.txt")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments.speed", description=__doc__)
    parser.add_argument("--requests", type=int, help=f"requests of a case (default {REQUESTS:,})")
    parser.add_argument("--repeat", type=int, help=f"how often each is measured (default {REPEAT})")
    parser.add_argument(
        "--quick", action="store_true", help=f"a look: {QUICK_REQUESTS:,} requests, measured once"
    )
    keys = ", ".join([*(case.key for case in CASES), COMMAND, OTHER])
    parser.add_argument("--only", nargs="+", metavar="KEY", help=f"measure only these: {keys}")
    options = parser.parse_args()
    options.requests = options.requests or (QUICK_REQUESTS if options.quick else REQUESTS)
    options.repeat = options.repeat or (QUICK_REPEAT if options.quick else REPEAT)
    unknown = set(options.only or ()) - {*(case.key for case in CASES), COMMAND, OTHER}
    if options.requests < LEAST_REQUESTS:
        parser.error(f"--requests must be at least {LEAST_REQUESTS}")
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {keys}")
    return options


def _sizes(requests: int) -> list[int]:
    """Return the sizes of the runs from the command line; the first shows what does not depend on size."""
    return [1, *(round(requests * share) for share in SIZES)]


def _is_asked(key: str, options: argparse.Namespace) -> bool:
    return options.only is None or key in options.only


def _saturation(cases: list[Case], requests: int) -> Saturation:
    """Return the saturation throughput of one unit of each setting (requests/s)."""
    _say("looking for the load that saturates each setting")
    runs = {case.setting: case.saturating for case in cases}
    found = ask("saturation", settings=list(runs.values()), requests=min(requests, MOST_OVERLOADED))
    return dict(zip(runs, found, strict=True))


def _measure(case: Case, saturation: Saturation, requests: int) -> Sample:
    _say(f"  {case.name}")
    overrides = case.overrides(saturation[case.setting])
    return Sample(**ask("measure", overrides=overrides, requests=case.volume * requests))


def _measure_other(saturation: Saturation, requests: int) -> Sample:
    _say(f"  {OTHER}")
    rate_rps = USUAL.load * saturation[USUAL.setting]
    answer = ask("schedsim", rate_rps=rate_rps, requests=requests, input_tokens=512, output_tokens=256)
    return Sample(**answer)


def _measure_command(saturation: Saturation, requests: int) -> Sample:
    _say(f"  from the command line: requests={requests}")
    return command(USUAL.overrides(saturation[USUAL.setting]), requests)


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
