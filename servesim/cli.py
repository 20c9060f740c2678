"""The ``servesim`` command."""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from collections.abc import Callable, Sequence
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path

from servesim import __version__
from servesim.arguments import Arguments
from servesim.check import ConfigError, Problem
from servesim.config.groups import Groups, conf_dir
from servesim.config.names import is_slip, nearest

CLEAN, WRONG_INPUT, NOT_CLEAN, INTERRUPTED = 0, 1, 3, 130

_HELP = """\
servesim simulates LLM serving on GPU clusters: latency, throughput and cost, without a GPU.

  servesim                               a 70B model on eight H100s, conversation traffic
  servesim scheduler=disaggregated workload.arrivals.rate_rps=12
  servesim model=llama3.1-8b cluster.replicas=8 cluster.tensor_parallel_size=1
  servesim workload=trace workload.path=trace.csv workload.rate_scale=2
  servesim model.hf_config=config.json "engine_args=--tensor-parallel-size 2 --max-num-seqs 256"
                                         a model and an engine as you have them: see the README
  servesim -m scheduler=static,continuous,disaggregated
                                         one run each, and a table that compares them
  servesim experiment=batching_frontier                  a study: many runs, a table, a page
  servesim explain --batch 64 --context 1400                    one step, operation by operation
  servesim memory model=llama3.1-8b gpu=l40s                    what its memory holds, or lacks
  servesim page runs/2026-01-31_12-00-00                        charts of a run, or of a study
  servesim trace runs/2026-01-31_12-00-00                       its timeline, for ui.perfetto.dev
  servesim trace trace.csv                      what a trace is like; --to writes another format
  servesim export runs/2026-01-31_12-00-00 --to vllm            result files of vLLM or AIPerf
  servesim metrics runs/2026-01-31_12-00-00 --dialect aiperf    figures as another tool defines them
  servesim plan model=llama3.1-8b workload.arrivals.rate_rps=40   the cheapest that meet the SLO
  servesim dashboard sweeps                                     what-ifs and sweeps, in your browser
  servesim validate result.json model=llama3.1-8b               a measured run, and simulated

Choose an option with group=name:
{groups}

Set a value with key=value: scheduler.max_num_seqs=256, slo.ttft_s=0.5, gpu.usd_per_hour=2.5,
scheduler.prefill_policy=prefill_first, workload.tenants.NAME.share=0.5, steady=true and so on.
`servesim --cfg job` prints every key with its value; the files under
{conf} explain them.

  --out DIR           write the run there; with -m, a numbered folder for each
  -m, --multirun      run every combination of the values given as a,b,c
  --config-dir DIR    also look for options in a folder of your own, laid out as conf/
  --cfg job           print the configuration instead of running it
  --version           print the version
  --hydra-help        what else the command line can do (it is Hydra's)

A run writes its requests, steps, summary and configuration to runs/<date>_<time>/; a study writes
its table and page to sweeps/<name>/, and goes on there where it was stopped. Exit status: 0 clean;
1 error in the input; 3 not clean (requests dropped, timed out or left over; a failed point).
"""
_HELP_WIDTH, _HELP_INDENT = 100, 24

_GROUPS = (
    "model",
    "gpu",
    "scheduler",
    "scheduler/queue_order",
    "scheduler/speculation",
    "scheduler/offload",
    "router",
    "admission",
    "client",
    "workload",
    "workload/arrivals",
    "workload/lengths",
    "workload/turns",
    "slo",
    "pricing",
    "calibration",
    "engine_overhead",
    "board_power",
    "experiment",
)
#: The verbs: the module of each, which has a function of the verb's name.
_VERBS = {
    "explain": "servesim.explain",
    "plan": "servesim.plan",
    "page": "servesim.pictures",
    "trace": "servesim.traces",
    "dashboard": "servesim.dashboard",
    "validate": "servesim.validation",
    "export": "servesim.export",
    "metrics": "servesim.export",
    "memory": "servesim.memory",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with ``arguments`` (the command line's) and return its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal may lack letters of a name
    try:
        return _dispatch(sys.argv[1:] if arguments is None else arguments)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return WRONG_INPUT
    except KeyboardInterrupt:
        print("servesim: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has left, such as `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLEAN
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        print(f"servesim: {place}{error.strerror or error}", file=sys.stderr)
        return WRONG_INPUT


def _dispatch(arguments: Sequence[str]) -> int:
    """Answer what needs no scenario at once; the rest is worth importing Hydra and the simulator for."""
    verb = arguments[0] if arguments else ""
    if verb in _VERBS:
        run: Callable[[Sequence[str]], int] = getattr(import_module(_VERBS[verb]), verb)
        return run(arguments[1:])
    _refuse_a_misspelt_verb(verb)
    options = _parser().parse_intermixed_args(arguments)
    if options.help:
        print(_help(options.config_dir))
        return CLEAN
    if options.version:
        print(f"servesim {__version__}")
        return CLEAN
    _refuse_what_is_not_there(options)
    if _asks_for_a_study(options):
        from servesim import study

        return study.run(options)
    from servesim.jobs import run_jobs

    return run_jobs(options)


def _asks_for_a_study(options: argparse.Namespace) -> bool:
    """Tell whether a study is to be run; questions about its configuration are Hydra's to answer."""
    asked = any(text.startswith("experiment=") for text in options.overrides)
    return asked and not _asks_of_the_configuration(options)


def _asks_of_the_configuration(options: argparse.Namespace) -> bool:
    return bool(options.cfg or options.info or options.hydra_help or options.shell_completion)


def _parser() -> argparse.ArgumentParser:
    """Return the parser of the options: those of Hydra's that are handed on, and servesim's own."""
    parser = Arguments("servesim")
    parser.add_argument("overrides", nargs="*")
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("--version", action="store_true")
    parser.add_argument("--out", type=Path)
    parser.add_argument("-cd", "--config-dir", type=Path)
    parser.add_argument("-cp", "--config-path")
    parser.add_argument("-cn", "--config-name")
    parser.add_argument("-p", "--package")
    parser.add_argument("--resolve", action="store_true")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("-r", "--run", action="store_true")
    action.add_argument("-m", "--multirun", action="store_true")
    action.add_argument("-c", "--cfg", choices=["job", "hydra", "all"])
    action.add_argument("-i", "--info", nargs="?", const="all")
    action.add_argument("-sc", "--shell-completion", action="store_true")
    action.add_argument("--hydra-help", action="store_true")
    return parser


def _refuse_a_misspelt_verb(first: str) -> None:
    """Name the verb that was meant before its options are taken for those of a run."""
    close = None if "=" in first or first.startswith("-") else nearest(first, _VERBS)
    if close and is_slip(first, close):
        raise ConfigError([Problem(first, None, f"there is no such verb; did you mean {close}?")])


def _refuse_what_is_not_there(options: argparse.Namespace) -> None:
    if options.config_path:
        message = "would replace servesim's own files; use --config-dir"
        raise ConfigError([Problem("--config-path", None, message)])
    if options.out and (_asks_for_a_study(options) or _asks_of_the_configuration(options)):
        raise ConfigError([Problem("--out", str(options.out), "goes with runs alone")])
    if options.resolve and not options.cfg:
        raise ConfigError([Problem("--resolve", None, "goes with --cfg job")])


def _help(config_dir: Path | None) -> str:
    """Return the help, with the options of the user's own folder beside the shipped ones."""
    groups = Groups.of(config_dir)
    own = [] if config_dir is None else Groups([config_dir]).names()
    names = [*_GROUPS, *(group for group in own if group not in _GROUPS)]
    rows = "\n".join(_row(group, options) for group in names if (options := groups.options(group)))
    return _HELP.format(groups=rows, conf=conf_dir())


def _row(group: str, options: Sequence[str]) -> str:
    """Return a group and its options, on as many lines as they need."""
    return textwrap.fill(
        ", ".join(options),
        _HELP_WIDTH,
        initial_indent=f"  {group:<{_HELP_INDENT - 3}} ",
        subsequent_indent=" " * _HELP_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )


if __name__ == "__main__":
    sys.exit(main())
