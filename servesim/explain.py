"""The verb ``servesim explain``: what one step consists of, and what the steady state amounts to."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from servesim.arguments import Arguments
from servesim.check import ConfigError, Problem
from servesim.cluster.deployment import Deployment
from servesim.cluster.pools import Pool
from servesim.config.loading import load
from servesim.cost.steady import Steady, steady
from servesim.engine.continuous import Continuous
from servesim.scenario import Scenario
from servesim.screen.console import console
from servesim.screen.roofline import roofline_lines
from servesim.screen.step import Step, print_notes, print_steady, print_step
from servesim.screen.step_notes import step_notes
from servesim.simulation import run
from servesim.workload.arrivals import ClosedLoop
from servesim.workload.client import Client
from servesim.workload.lengths import MOST_TOKENS
from servesim.workload.synthetic import Synthetic

_HELP = """\
servesim explain [overrides] [options]: one step of a replica, operation by operation.

  servesim explain                                            64 decodes at 1,400 tokens of KV each
  servesim explain --batch 32 --context 4000 --chunk 2048     beside a chunk of a prompt
  servesim explain --batch 0 --chunk 8192+4096                a prompt's chunk behind 4,096 cached tokens
  servesim explain model=llama3.1-8b cluster.tensor_parallel_size=1 --steady

  --batch N           decoding sequences in the step (64)
  --context N         KV tokens that each of them reads (1,400)
  --chunk NEW[+OLD]   prefill of NEW tokens behind OLD cached ones; may be given several times
  --steady            a closed loop of --batch users with the scenario's lengths: the mean time per output
                      token in closed form, and simulated
  --config-dir DIR    also look for options in a folder of your own, laid out as conf/
"""

#: Requests per user that the simulated closed loop runs for.
_ROUNDS = 12

#: What a step of takes seconds to tabulate: a hundred times the largest steps that engines run.
_MOST_SEQUENCES, _MOST_STEP_TOKENS = 100_000, 1_000_000

#: Users of a closed loop that is simulated in seconds.
_MOST_USERS = 10_000


def explain(arguments: Sequence[str]) -> int:
    """Print the step that ``arguments`` (those after the verb) describe; return the exit status.

    Raises:
        ConfigError: listing what is wrong with the input.

    """
    options = _parser().parse_intermixed_args(arguments)
    if options.help:
        print(_HELP)
        return 0
    step = Step(options.batch, options.batch * options.context, tuple(options.chunk))
    if found := list(_too_much(options, step)):
        raise ConfigError(found)
    scenario = load(*options.overrides, config_dir=options.config_dir)
    out = console()
    for pool in scenario.deployments():
        print_step(scenario, pool, step, out)
        out.print("\n".join(roofline_lines(pool, scenario.model.weights_dtype, step)), highlight=False)
        print_notes(step_notes(scenario, pool, step), out)
    if options.steady:
        print_steady(*_steady(scenario, options.batch), out)
    return 0


def _too_much(options: argparse.Namespace, step: Step) -> Iterator[Problem]:
    """Yield what makes a step of nothing, or one that would take minutes to tell."""
    most_users = _MOST_USERS if options.steady else _MOST_SEQUENCES
    for option, count, most in (
        ("--batch", options.batch, most_users),
        ("--context", options.context, MOST_TOKENS),
        ("--chunk", max((cached for _, cached in options.chunk), default=0), MOST_TOKENS),
        ("--chunk", sum(new for new, _ in options.chunk), _MOST_STEP_TOKENS),
    ):
        if count > most:
            of = " with --steady" if option == "--batch" and options.steady else ""
            yield Problem(option, count, f"must be at most {most:,}{of}")
    if not step.tokens:
        yield Problem("--batch", 0, "a step needs decodes or a chunk")


def _steady(scenario: Scenario, users: int) -> tuple[Steady, list[str], float | str]:
    """Return the closed form, why it does not hold, and the simulated mean time per output token.

    In place of the last, why there is none.
    """
    workload, scheduler = scenario.workload, scenario.scheduler
    if not (
        type(scheduler) is Continuous
        and isinstance(workload, Synthetic)
        and isinstance(scenario.cluster, Pool)
    ):
        message = "needs scheduler=continuous and workload=synthetic"
        raise ConfigError([Problem("--steady", None, message)])
    if not users:
        raise ConfigError([Problem("--steady", None, "needs a --batch of users")])
    one = replace(
        scenario,
        cluster=replace(scenario.cluster, replicas=1),
        workload=replace(workload, arrivals=ClosedLoop(users), requests=_ROUNDS * users, duration_s=None),
        client=Client(),
        steady=True,
        horizon_s=None,
    )
    (pool,) = one.deployments()
    closed = _closed_form(pool, scheduler, workload, users)
    summary = run(one).summary
    simulated = summary["latency"]["tpot_s"]["mean"]
    if simulated is None:
        dropped = sum(summary["accounting"]["dropped"].values()) == summary["accounting"]["injected"]
        simulated = (
            "all requests are dropped" if dropped else "no answer in the steady part has a second token"
        )
    return closed, list(_wrong(pool, scheduler, workload, users)), simulated


def _wrong(pool: Deployment, scheduler: Continuous, workload: Synthetic, users: int) -> Iterator[str]:
    """Yield why not all users are served at once, as the closed form has it."""
    needed, held = users * sum(workload.lengths.mean), pool.kv_blocks * scheduler.block_size
    if needed > held:
        yield f"{users:,} users need {needed:,.0f} tokens of KV on average, a replica holds {held:,}"
    if users > scheduler.max_num_seqs:
        yield f"{users:,} users, max_num_seqs is {scheduler.max_num_seqs:,}"


def _closed_form(pool: Deployment, scheduler: Continuous, workload: Synthetic, users: int) -> Steady:
    (prompt, output), (_, variance) = workload.lengths.mean, workload.lengths.variance
    return steady(
        pool.step_time,
        concurrency=users,
        input_tokens=prompt,
        output_tokens=output,
        output_variance=variance,
        max_num_batched_tokens=scheduler.max_num_batched_tokens,
        speculation=scheduler.speculation,
    )


def _parser() -> argparse.ArgumentParser:
    parser = Arguments("servesim explain")
    parser.add_argument("overrides", nargs="*")
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("--batch", type=_count, default=64)
    parser.add_argument("--context", type=_count, default=1400)
    parser.add_argument("--chunk", type=_chunk, action="append", default=[])
    parser.add_argument("--steady", action="store_true")
    parser.add_argument("-cd", "--config-dir", type=Path)
    return parser


def _count(text: str) -> int:
    if re.fullmatch(r"-[0-9,]*[0-9]", text):
        raise argparse.ArgumentTypeError(f"{text} is below 0")
    if not re.fullmatch(r"[0-9][0-9,]{0,30}", text):
        raise argparse.ArgumentTypeError(f"{text or 'nothing'} is no whole number of tokens or sequences")
    return int(text.replace(",", ""))


def _chunk(text: str) -> tuple[int, int]:
    """Return (new, cached) tokens from NEW or NEW+OLD."""
    new, _, cached = text.partition("+")
    chunk = _count(new), _count(cached or "0")
    if not chunk[0]:
        raise argparse.ArgumentTypeError(f"{text} has no new tokens")
    return chunk
