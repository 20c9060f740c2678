"""The verb ``servesim memory``: what a GPU's memory is spent on, without a simulation."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from servesim.arguments import Arguments
from servesim.check import ConfigError, Problem
from servesim.cluster.deployment import PoolMemory
from servesim.config.loading import load
from servesim.config.vllm.log import EngineLog, read_log
from servesim.cost.memory import GIB
from servesim.engine.continuous import MOST_BLOCKS
from servesim.scenario import Scenario
from servesim.screen.console import console
from servesim.screen.figures import counted
from servesim.screen.memory import Pair, print_memory, print_pairs
from servesim.screen.words import formats

FITS, WRONG = 0, 1

_HELP = """\
servesim memory [overrides] [options]: what the memory of a GPU is spent on, and what is left for KV.

  servesim memory                                            the memory sheet of each pool
  servesim memory model=llama3.1-8b gpu=l40s cluster.tensor_parallel_size=1
  servesim memory engine_args=vllm.yaml --vllm-log engine.log    beside what an engine logged
  servesim $(servesim memory engine_args=vllm.yaml --vllm-log engine.log --adopt) engine_args=vllm.yaml
                                                             run with the KV blocks that it has

  --vllm-log FILE     compare with the lines that vLLM logs of its memory as it starts; of several engines
                      in one log, the one with the least KV cache counts
  --adopt             print nothing but the override that takes the number of KV blocks over from the log
                      (and the comparison on the standard error)
  --config-dir DIR    also look for options in a folder of your own, laid out as conf/

Exit status: 0 the model fits; 1 it does not, or the input is wrong.
"""


def memory(arguments: Sequence[str]) -> int:
    """Print the memory sheets that ``arguments`` (those after the verb) ask for; return the exit status.

    Raises:
        ConfigError: listing what is wrong with the input.

    """
    options = _parser().parse_intermixed_args(arguments)
    if options.help:
        print(_HELP)
        return FITS
    if options.adopt and options.vllm_log is None:
        raise ConfigError([Problem("--adopt", None, "needs a log: --vllm-log FILE")])
    log = None if options.vllm_log is None else read_log(options.vllm_log)
    scenario, refused = _scenario(options)
    pools = scenario.memory()
    out = console(stderr=options.adopt)
    title = f"{scenario.model.name}, {formats(scenario.as_dict())}"
    print_memory(title, pools, scenario.notes, out)
    if log is not None:
        for pool in pools:
            pairs, remarks = list(_pairs(pool, log)), list(_notes(pool, log))
            print_pairs(options.vllm_log.name, pool.role, pairs, remarks, out)
        _take_over(scenario, log, options.adopt)
    if refused is not None and all(pool.sheet.fits for pool in pools):
        raise refused
    return FITS if all(pool.sheet.fits for pool in pools) else WRONG


def _scenario(options: argparse.Namespace) -> tuple[Scenario, ConfigError | None]:
    """Return the scenario, and why it cannot run where that is a matter of memory alone.

    Raises:
        ConfigError: something else is wrong.

    """
    try:
        return load(*options.overrides, config_dir=options.config_dir), None
    except ConfigError as error:
        try:
            scenario = load(*options.overrides, "ignore_capacity=true", config_dir=options.config_dir)
        except ConfigError:
            raise error from None
        return replace(scenario, ignore_capacity=False), error


def _pairs(pool: PoolMemory, log: EngineLog) -> Iterator[Pair]:
    """Yield the terms of a sheet beside those of a log."""
    sheet, size = pool.sheet, pool.sheet.block_size
    if log.gpu_gib is not None:
        yield Pair("GPU memory, GiB", sheet.gpu_bytes / GIB, log.gpu_gib)
    yield Pair("weights, GiB", sheet.weights_bytes / GIB, log.weights_gib)
    yield Pair("activations, GiB", sheet.activation_bytes / GIB, log.activations_gib)
    yield Pair("runtime, GiB", sheet.runtime_bytes / GIB, log.runtime_gib)
    if log.graphs_gib is not None:
        yield Pair("CUDA graphs, GiB", None, log.graphs_gib)
    yield Pair("KV cache, GiB", sheet.kv_bytes / GIB, log.kv_gib)
    blocks = log.kv_blocks(size)
    yield Pair(f"KV blocks of {counted(size, 'token')}", sheet.blocks, blocks, 0)
    yield Pair("KV cache, tokens", sheet.kv_tokens, log.tokens or (blocks and blocks * size), 0)
    longest = int(log.max_model_len or pool.max_model_len)
    if longest:
        label = f"concurrency for {longest:,} tokens"
        yield Pair(label, sheet.concurrency(longest), log.concurrency)


def _notes(pool: PoolMemory, log: EngineLog) -> Iterator[str]:
    """Yield what keeps a log and a scenario from being about the same engine."""
    if log.version is not None:
        yield f"vLLM {log.version}"
    if log.engines > 1:
        yield f"{log.engines} engines in one log: of each figure, the one that leaves the least KV cache"
    if log.overridden is not None:
        yield "the engine was given num_gpu_blocks_override: its blocks are not what its memory would hold"
    size = log.tensor_parallel_size
    if size is not None and size != pool.tensor_parallel_size:
        yield f"the engine has tensor_parallel_size={size:.0f}, simulated are {pool.tensor_parallel_size}"
    if log.max_model_len is not None and log.max_model_len != pool.max_model_len:
        yield f"the engine has max_model_len={log.max_model_len:.0f}, simulated are {pool.max_model_len}"


def _take_over(scenario: Scenario, log: EngineLog, adopt: bool) -> None:
    """Print the override that takes the number of blocks over.

    Raises:
        ConfigError: the log does not tell it, and it is asked for; or there cannot be so many.

    """
    size = scenario.scheduler.block_size
    blocks = log.kv_blocks(size)
    if blocks is not None and blocks > MOST_BLOCKS:
        message = f"cannot be: an engine has at most {MOST_BLOCKS:,} KV blocks"
        raise ConfigError([Problem("--vllm-log", blocks, message)])
    if blocks is not None and blocks > 0:
        override = f"scheduler.num_gpu_blocks_override={blocks}"
        print(override if adopt else f"To simulate as many blocks: {override}")
    elif adopt:
        message = 'tells no number of KV blocks, such as "GPU KV cache size: 123,456 tokens"'
        raise ConfigError([Problem("--vllm-log", None, message)])


def _parser() -> argparse.ArgumentParser:
    parser = Arguments("servesim memory")
    parser.add_argument("overrides", nargs="*")
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("--vllm-log", type=Path)
    parser.add_argument("--adopt", action="store_true")
    parser.add_argument("-cd", "--config-dir", type=Path)
    return parser
