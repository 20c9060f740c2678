"""The verb ``servesim plan``: the cheapest configurations that meet an objective under given traffic."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile

from servesim.arguments import Arguments
from servesim.check import ConfigError, Problem, field_problems
from servesim.config.groups import Groups
from servesim.config.kinds import KINDS
from servesim.cost.gpu import Gpu
from servesim.frontier.candidate import Candidate
from servesim.frontier.catalogue import catalogue
from servesim.frontier.plan import Question
from servesim.frontier.plan import plan as find
from servesim.frontier.traffic import Trial, fair_trial
from servesim.screen.console import console
from servesim.screen.plan import print_plan
from servesim.screen.progress import progress_bar
from servesim.words import listed

MET, NONE_MEETS = 0, 3

_HELP = """\
servesim plan [overrides] [options]: the cheapest configurations that meet an SLO under given traffic.

  servesim plan                                          a 70B model, 4 requests/s, on every GPU there is
  servesim plan model=llama3.1-8b workload.arrivals.rate_rps=40 slo.ttft_s=0.3 slo.tpot_s=0.03
  servesim plan --gpus h100-sxm=2.49,l40s=0.79 --schedulers continuous --tensor-parallel 1,2

Overrides are those of a run and say what is to be served: the model, the traffic (open-loop: its rate has to
be carried), the SLO, prices. GPU, tensor parallelism, scheduler and replicas are what the plan finds.

  --gpus NAME[=PRICE],...      GPUs to choose from, at dollars per hour in place of their own (all)
  --schedulers NAME,...        continuous, disaggregated (both by default), static
  --tensor-parallel N,...      GPUs per replica, the same in both pools where there are two (1,2,4,8)
  --max-gpus N                 GPUs of one configuration at the most (256)
  --max-replicas N             replicas of one configuration at the most, both pools together (1000)
  --requests N                 requests of each run (as many as the SLO and the rate need)
  --seeds N                    runs of each configuration; their requests are judged together (3)
  --jobs N                     processes (one per core); the answer does not depend on it
  --top K                      configurations to rank (5)
  --out DIR                    write plan.csv, plan.json and plan.parquet, with a row for each configuration
  --config-dir DIR             also look for options, such as GPUs, in a folder of your own

A configuration meets the SLO when in the steady part of its runs enough requests do, and no run is saturated
or loses a request. Its replicas are the fewest that do: with one fewer it was tried, too, or cannot keep up.
Exit status: 0 when a configuration meets the SLO; 3 when none does; 1 error in the input.
"""

#: Half of a run may be warm-up, and of fewer than 24 requests nobody can tell whether they pile up.
_FEWEST_REQUESTS = 50
#: Bounds of numbers: of any, of runs of each configuration, of requests of each run, of processes.
_MOST, _MOST_SEEDS, _MOST_REQUESTS, _MOST_JOBS = 1_000_000, 1000, 10_000_000, 1024
_MOST_DIGITS = 100  # Python refuses to read numbers of thousands of digits


def plan(arguments: Sequence[str]) -> int:
    """Print the plan that ``arguments`` (those after the verb) ask for; return the exit status.

    Raises:
        ConfigError: listing what is wrong with the input.

    """
    options = _parser().parse_intermixed_args(arguments)
    if options.help:
        print(_HELP)
        return MET
    candidates, question, jobs = _checked(options)
    if options.out is not None:
        _claim(options.out)
    with progress_bar(len(candidates), console(stderr=True), counted="configurations settled") as tell:
        answers = find(candidates, question, jobs, tell)
    scenario = candidates[0].scenario
    print_plan(scenario, answers, question, console(), options.out)
    if options.out is not None:
        from servesim.frontier.table import save

        sys.stdout.flush()  # should the files fail, the plan has been printed
        save(answers, question, scenario.as_dict(), options.out)
    return MET if answers[0].fate == "meets" else NONE_MEETS


def _checked(options: argparse.Namespace) -> tuple[list[Candidate], Question, int]:
    """Return the candidates, the question and the number of processes.

    Raises:
        ConfigError: listing everything that is wrong.

    """
    groups, numbers = Groups.of(options.config_dir), _Numbers()
    gpus, found = _gpus(groups, options.gpus)
    schedulers, more = _schedulers(groups, options.schedulers)
    sizes = sorted({numbers.whole("--tensor-parallel", text) for text in options.tensor_parallel.split(",")})
    max_replicas = numbers.whole("--max-replicas", options.max_replicas)
    max_gpus = numbers.whole("--max-gpus", options.max_gpus)
    seeds = numbers.whole("--seeds", options.seeds, most=_MOST_SEEDS)
    top = numbers.whole("--top", options.top)
    jobs = -1 if options.jobs is None else numbers.whole("--jobs", options.jobs, most=_MOST_JOBS)
    requests = None
    if options.requests is not None:
        requests = numbers.whole("--requests", options.requests, _FEWEST_REQUESTS, _MOST_REQUESTS)
    candidates, others = catalogue(
        options.overrides,
        gpus or {"": []},  # so that the overrides are checked, whatever is wrong with the options
        schedulers or ["continuous"],
        sizes,
        options.config_dir,
    )
    problems = [*found, *more, *numbers.problems, *others]
    if problems:
        raise ConfigError(problems)
    scenario = candidates[0].scenario
    numbered = tuple(range(scenario.seed, scenario.seed + seeds))
    trial = Trial(requests, numbered) if requests else fair_trial(scenario.workload, scenario.slo, numbered)
    return candidates, Question(trial, max_replicas, max_gpus, top), jobs


def _claim(folder: Path) -> None:
    """Make the folder of the files, before anything is simulated for them.

    Raises:
        ConfigError: nothing can be written there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        message = f"cannot be written into ({error.strerror})"
        raise ConfigError([Problem("--out", str(folder), message)]) from error


def _gpus(groups: Groups, typed: str | None) -> tuple[dict[str, list[str]], list[Problem]]:
    """Return the overrides that choose each GPU and set its price, and the problems of the others."""
    chosen: dict[str, list[str]] = {}
    found = []
    for text in groups.options("gpu") if typed is None else typed.split(","):
        name, priced, price = text.partition("=")
        problem = groups.problem("gpu", name)
        if problem is not None:
            found.append(replace(problem, path="--gpus"))
        elif name in chosen:
            found.append(Problem("--gpus", text, "is named twice"))
        elif priced and not _is_price(price):
            found.append(Problem("--gpus", text, "the price must be a number of dollars per hour"))
        else:
            chosen[name] = [f"gpu={name}", *([f"gpu.usd_per_hour={price}"] if priced else [])]
    return chosen, found


def _is_price(text: str) -> bool:
    """Tell whether a text is a number that a price can be."""
    try:
        usd_per_hour = float(text)
    except ValueError:
        return False
    return not any(field_problems(Gpu, {"usd_per_hour": usd_per_hour}))


def _schedulers(groups: Groups, typed: str) -> tuple[list[str], list[Problem]]:
    """Return the schedulers to compare, and the problems of those that cannot be."""
    names = list(dict.fromkeys(typed.split(",")))
    found = [
        replace(problem, path="--schedulers")
        for name in names
        if (problem := groups.problem("scheduler", name))
    ]
    wrong = {str(problem.value) for problem in found}
    kinds = KINDS["scheduler"]
    message = f"a plan compares {listed(kinds, 'and')}"
    found += [
        Problem("--schedulers", name, message) for name in names if name not in kinds and name not in wrong
    ]
    return [name for name in names if name in kinds], found


class _Numbers:
    """Reads whole numbers, and remembers what is wrong with some."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def whole(self, option: str, text: str, least: int = 1, most: int = _MOST) -> int:
        """Return a whole number; ``least``, and a problem, where the text is none or is out of bounds."""
        digits = text.strip()
        if digits.isdecimal() and len(digits) <= _MOST_DIGITS and least <= int(digits) <= most:
            return int(digits)
        self.problems.append(
            Problem(option, text, f"must be a whole number, at least {least} and at most {most:,}")
        )
        return least


def _parser() -> argparse.ArgumentParser:
    parser = Arguments("servesim plan")
    parser.add_argument("overrides", nargs="*")
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("--gpus")
    parser.add_argument("--schedulers", default="continuous,disaggregated")
    parser.add_argument("--tensor-parallel", default="1,2,4,8")
    parser.add_argument("--max-gpus", default="256")
    parser.add_argument("--max-replicas", default="1000")
    parser.add_argument("--requests")
    parser.add_argument("--seeds", default="3")
    parser.add_argument("--jobs")
    parser.add_argument("--top", default="5")
    parser.add_argument("--out", type=Path)
    parser.add_argument("-cd", "--config-dir", type=Path)
    return parser
