"""The metrics of InferenceX (``utils/process_result.py``): vLLM's in seconds, reciprocals, rates per GPU."""

from __future__ import annotations

from dataclasses import replace

from servesim.results.dialects import vllm
from servesim.results.dialects.dialect import Dialect, Metric
from servesim.results.dialects.sample import Sample
from servesim.results.dialects.statistics import Statistics, bench
from servesim.results.rates import ratio

_STATISTICS = bench((90, 99))


def interactivity(sample: Sample) -> Statistics:
    """Return 1 over each statistic of TPOT in seconds, which is not the statistic of the reciprocals.

    So p99 is the slow side. Nothing where TPOT is 0. InferenceX has 1 / std as well, which means nothing.
    """
    tpot_s = _STATISTICS(sample.tpot_s[sample.several_tokens])
    return {name: 1 / each if each else None for name, each in tpot_s.items() if name != "std"}


def tput_per_gpu(sample: Sample) -> float:
    """Return tokens per second, prompts included, over all GPUs."""
    return vllm.total_token_throughput(sample) / sum(sample.gpus.values())


def output_tput_per_gpu(sample: Sample) -> float:
    """Return output tokens per second over the GPUs that decode."""
    return vllm.output_throughput(sample) / _gpus(sample, "decode")


def input_tput_per_gpu(sample: Sample) -> float:
    """Return prompt tokens per second over the GPUs that prefill."""
    return ratio(sample.total_input_tokens, sample.duration_s) / _gpus(sample, "prefill")


def _gpus(sample: Sample, role: str) -> int:
    """Return the GPUs of one role; all where no pool has it to itself."""
    return sample.gpus.get(role, sum(sample.gpus.values()))


INFERENCEX = Dialect(
    "inferencex",
    "InferenceX",
    (
        *(replace(each, name=each.name.removesuffix("_ms"), unit="s", scale=1.0) for each in vllm.LATENCIES),
        Metric(
            "intvty", "tokens/s", "1 / the same statistic of tpot: its p99 is the slow side", interactivity
        ),
        Metric(
            "tput_per_gpu",
            "tokens/s/GPU",
            "input and output tokens / duration / all GPUs",
            tput_per_gpu,
            single=True,
        ),
        Metric(
            "output_tput_per_gpu",
            "tokens/s/GPU",
            "output tokens / duration / GPUs, of two pools those that decode",
            output_tput_per_gpu,
            single=True,
        ),
        Metric(
            "input_tput_per_gpu",
            "tokens/s/GPU",
            "input tokens / duration / GPUs, of two pools those that prefill",
            input_tput_per_gpu,
            single=True,
        ),
    ),
    _STATISTICS,
    ("mean", "median", "std", "p90", "p99"),
)
