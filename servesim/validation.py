"""The verb ``servesim validate``: measured runs beside the same requests simulated."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from servesim.arguments import Arguments
from servesim.check import ConfigError, Problem
from servesim.scenario import Scenario
from servesim.screen.console import console
from servesim.screen.fit import print_fit
from servesim.screen.points import print_points
from servesim.screen.progress import adding_up, points_bar
from servesim.screen.validation import print_validation
from servesim.validate import saved
from servesim.validate.asked import Asked, Fitting, asked
from servesim.validate.closed_loop import bases, simulate_points
from servesim.validate.compare import Comparison
from servesim.validate.points import is_points
from servesim.validate.readers.content import Content
from servesim.validate.replay import base, replayed, simulated
from servesim.validate.series import knees
from servesim.validate.terms import FittedTerms, fit_terms, of_points, of_runs
from servesim.validate.terms_file import write_terms
from servesim.validate.tolerance import (
    OF_POINTS,
    OF_RUNS,
    check_points,
    check_runs,
    judged,
    measures_of_points,
    measures_of_run,
)
from servesim.words import listed

AGREES, NOT_CLEAN, MISSED = 0, 3, 4
PAGE, SAVED = "index.html", "comparison.json"

_HELP = """\
servesim validate RUN ... [overrides] [options]: measured runs beside the same requests simulated.

  servesim validate result.json model=llama3.1-8b cluster.tensor_parallel_size=1
  servesim validate 1qps.json 2qps.json 4qps.json --ttft-limit 1
  servesim validate requests.csv --where scenario=chat --by qps
  servesim validate points.csv --isl 1024 --osl 128 --where "backend=vllm tp=4"
  servesim validate points.csv model=qwen3-32b --fit --held-out tp=4 --name vllm-mine
  servesim validate result.json --tolerance "ttft.mean=15% tpot.p50=10% ttft.ks=0.1"

A RUN is a file that a benchmark has left; what it holds tells which. Overrides contain "=" and describe what
the run was measured on; the traffic is the run's own. A measured endpoint is most often one engine, so there
is one replica where nothing says cluster.replicas; what nobody says of the server is told as assumed.

  vllm bench serve    its JSON, best with --save-detailed; without, only the figures that it has are compared
  AIPerf              profile_export.jsonl, or its summary as JSON or CSV
  GuideLLM            benchmarks.json; each benchmark in it is a run
  a table             CSV or JSON lines, one request each: arrival, input and output tokens, ttft, e2e (or
                      generation_time, tpot, or an engine's first_token_ts and last_token_ts); names may end
                      with a unit: ttft_ms
  closed-loop points  CSV, one point each: concurrency, isl, osl, tp, and ttft, tpot, throughput

A run is replayed at its recorded times of sending; or, where all requests were due at once and the client
limited how many were under way, by that many users, who begin as the times say. Users who thought are told by
workload.arrivals.ramp_up_s=S, .think_time_s=S and .think_time=exponential; else such a run is replayed at its
times. Of a file without requests only means are compared. Errors are simulated / measured - 1.

  --max-concurrency N     the client's limit, where the file does not say: requests sent by N users
  --where "COLUMN=VALUE"  take these rows of a table; several conditions have blanks between them, and a
                          column is called as in the file, or tp, isl, osl, concurrency and the like
  --by COLUMN,...         rows of a table that differ in these columns are runs of their own
  --ttft-limit S          at which of several rates p99 TTFT passes S seconds, measured and simulated, among
                          runs that differ in their rate alone
  --isl N, --osl N        tokens in and out of closed-loop points, where the table does not say
  --requests-per-user N   requests of each user of a closed-loop point (5)
  --tolerance "NAME=LIMIT ..."
                          of runs METRIC.STATISTIC (ttft, tpot, itl, e2e; mean, p50, p90, p99, and mdape of
                          single requests), throughput.requests and throughput.output_tokens in per cent,
                          METRIC.ks from 0 to 1; of points METRIC.mape, .mdape and .bias in per cent
  --start steady|burst    how the users of closed-loop points begin: spread over a request's time, or at once
  --fit                   fit the engine's three terms (engine_overhead.step_s, .sequence_s, .prefill_factor)
                          to the runs, and write them as an option of that group
  --fit-on "METRIC.STATISTIC ..."  the figure that is to be met: of each run the first that it has (tpot.mean)
  --held-out "NAME=VALUE ..."  judge the fit by these runs: points by tp, isl, osl, concurrency or a column of
                          the file, runs by the columns of --by
  --name NAME             what the fitted option is called (fitted)
  --jobs N                processes (one per core); the figures do not depend on it
  --out DIR               where index.html and comparison.json go (validation/<name of the first RUN>, below
                          the name of its folder)
  --config-dir DIR        also look for options in a folder of your own, laid out as conf/

Exit status: 0; 4 when a tolerance is missed; 3 when requests of a simulated run did not complete; 1 error in
the input.
"""


def validate(arguments: Sequence[str]) -> int:
    """Print the comparison that ``arguments`` (those after the verb) ask for; return the exit status.

    Raises:
        ConfigError: listing what is wrong with the input.

    """
    options = _parser().parse_intermixed_args(arguments)
    if options.help:
        print(_HELP)
        return AGREES
    what = asked(options)
    tables = [content for content in what.contents if is_points(content)]
    if not tables:
        return _fit_runs(what, what.fit) if what.fit else _validate_runs(what)
    if len(what.contents) > 1:
        message = "is a table of closed-loop points, which is compared by itself"
        raise ConfigError([Problem(tables[0].source, None, message)])
    return _fit_points(what, what.fit, tables[0]) if what.fit else _validate_points(what, tables[0])


def _validate_runs(what: Asked) -> int:
    """Compare measured runs with their replays."""
    measured = what.measured()
    tolerances = what.tolerances(OF_RUNS)
    check_runs(tolerances, measured)
    scenario = base(what.overrides, what.config_dir)
    with points_bar(console(stderr=True), counted="runs") as tell:
        found = simulated(scenario, measured, what.jobs, tell)
    comparisons = [Comparison(each, *replay) for each, replay in zip(measured, found, strict=True)]
    verdicts = [
        verdict
        for each in comparisons
        for verdict in judged(tolerances, each.measured.source, measures_of_run(each))
    ]
    passed = [] if what.ttft_limit_s is None else knees(comparisons, what.ttft_limit_s)
    told = replayed(scenario, measured[0]).as_dict()
    print_validation(told, comparisons, passed, verdicts, what.files(PAGE, SAVED), console())
    if what.ttft_limit_s is not None and not passed:
        print("no knee: it takes runs at two rates, alike in all else, with p99 TTFT", file=sys.stderr)
    sys.stdout.flush()  # should the files fail, the figures have been printed

    from servesim.report.validation.page import runs_page  # plotly takes long to import

    saved.write(saved.of_runs(told, comparisons, passed, verdicts), what.out / SAVED)
    runs_page(comparisons, told, passed, verdicts).write(what.out / PAGE)
    if not all(verdict.met for verdict in verdicts):
        return MISSED
    return NOT_CLEAN if any(each.run.failed for each in found) else AGREES


def _validate_points(what: Asked, content: Content) -> int:
    """Compare closed-loop points with one simulated run each."""
    points = what.points(content)
    tolerances = what.tolerances(OF_POINTS)
    check_points(tolerances, points)
    with points_bar(console(stderr=True)) as tell:
        found = simulate_points(
            points, what.overrides, what.per_user, what.config_dir, what.jobs, tell, what.start
        )
    verdicts = judged(tolerances, points.source, measures_of_points(found))
    told = found.scenario.as_dict()
    print_points(found, told, verdicts, what.files(PAGE, SAVED), console())
    sys.stdout.flush()

    from servesim.report.validation.points import points_page

    saved.write(saved.of_points(told, found, verdicts), what.out / SAVED)
    points_page(found, told, verdicts).write(what.out / PAGE)
    if not all(verdict.met for verdict in verdicts):
        return MISSED
    return AGREES if found.clean else NOT_CLEAN


def _fit_runs(what: Asked, fitting: Fitting) -> int:
    """Fit the terms of an engine to measured runs, whose requests are replayed."""
    measured, scenario = what.measured(), base(what.overrides, what.config_dir)
    source = listed(dict.fromkeys(content.source for content in what.contents), "and")
    with points_bar(console(stderr=True), counted="simulated runs") as tell:
        runs = of_runs(measured, scenario, fitting.figures, fitting.held_out, what.jobs, adding_up(tell))
        found = fit_terms(runs, fitting.name)
    return _fitted(what, fitting, found, scenario, source)


def _fit_points(what: Asked, fitting: Fitting, content: Content) -> int:
    """Fit the terms of an engine to closed-loop points."""
    points = what.points(content)
    scenarios = bases(points, what.overrides, what.config_dir)
    how: dict[str, Any] = {"requests_per_user": what.per_user, "jobs": what.jobs, "start": what.start}
    with points_bar(console(stderr=True), counted="simulated points") as tell:
        runs = of_points(
            points, scenarios, fitting.figures, fitting.held_out, content, **how, progress=adding_up(tell)
        )
        found = fit_terms(runs, fitting.name)
    scenario = next(each for each in scenarios.values() if isinstance(each, Scenario))
    return _fitted(what, fitting, found, scenario, points.source)


def _fitted(what: Asked, fitting: Fitting, found: FittedTerms, scenario: Scenario, source: str) -> int:
    """Print and write fitted terms."""
    path = what.out / "engine_overhead" / f"{fitting.name}.yaml"
    write_terms(found, scenario, source, fitting.split, path)
    use = f"{path}: use it with --config-dir {what.out} engine_overhead={fitting.name}"
    print_fit(found, scenario.as_dict(), source, fitting.split, use, console())
    return AGREES


def _parser() -> argparse.ArgumentParser:
    parser = Arguments("servesim validate")
    parser.add_argument("rest", nargs="*")
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("--where")
    parser.add_argument("--by")
    parser.add_argument("--max-concurrency")
    parser.add_argument("--ttft-limit")
    parser.add_argument("--isl")
    parser.add_argument("--osl")
    parser.add_argument("--requests-per-user")
    parser.add_argument("--tolerance")
    parser.add_argument("--start", default="steady")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--fit-on")
    parser.add_argument("--held-out")
    parser.add_argument("--name")
    parser.add_argument("--jobs")
    parser.add_argument("--out", type=Path)
    parser.add_argument("-cd", "--config-dir", type=Path)
    return parser
