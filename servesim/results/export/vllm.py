"""The result file of ``vllm bench serve`` (``--save-result``, ``--save-detailed``): its keys in its order.

Source: ``vllm/benchmarks/serve.py``. What a simulated run cannot have is told apart: ``backend`` is servesim,
so that nobody takes it for a measurement, and there is no ``date`` unless one is given, so that a file
depends on its run alone. The GPUs that plotters divide by stand where vLLM puts the user's own metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from servesim.engine.log import COMPLETED, REASONS, STATUSES
from servesim.results.dialects import vllm
from servesim.results.dialects.dialect import Metric
from servesim.results.dialects.sample import Sample
from servesim.results.export.about import About
from servesim.results.stored import Tables

BACKEND = "servesim"


def bench_result(
    sample: Sample, about: About, date: str | None = None, detailed: Tables | None = None
) -> dict[str, Any]:
    """Return a run as ``vllm bench serve`` writes it.

    With ``detailed`` tables also one entry per request, in order of sending: times in seconds on the clock of
    the run. A request that did not complete has no latencies, and its error says what became of it.
    """
    return {
        **_heading(sample, about, date),
        **_figures(sample, vllm.COUNTS),
        **(_per_request(sample, detailed) if detailed is not None else {}),
        **_figures(sample, vllm.PEAKS),
        "rtfx": 0.0,  # of speech
        **_figures(sample, vllm.LATENCIES),
    }


def file_name(about: About, date: str | None = None) -> str:
    """Return the name that ``vllm bench serve`` gives the file: rate, concurrency, model and date."""
    limit = "" if about.max_concurrency is None else f"-concurrency{about.max_concurrency}"
    day = "" if date is None else f"-{date}"
    return f"{BACKEND}-{about.request_rate}qps{limit}-{about.model.split('/')[-1]}{day}.json"


def _heading(sample: Sample, about: About, date: str | None) -> dict[str, Any]:
    parallel = {
        "tensor_parallel_size": about.tensor_parallel_size,
        "pipeline_parallel_size": 1,
        "data_parallel_size": about.replicas,
    }
    return {
        **({} if date is None else {"date": date}),
        "endpoint_type": BACKEND,
        "backend": BACKEND,
        "label": None,
        "model_id": about.model,
        "tokenizer_id": about.model,
        "num_prompts": sample.completed + sample.failed,
        "servesim_version": about.version,
        **(parallel if about.replicas is not None else {}),
        "num_gpus": about.num_gpus,
        "request_rate": _finite(about.request_rate),
        "burstiness": _finite(about.burstiness),
        "max_concurrency": about.max_concurrency,
        **about.ramp,
    }


def _figures(sample: Sample, metrics: tuple[Metric, ...]) -> dict[str, Any]:
    """Return metrics by vLLM's keys: the statistic in front of the name, where there are several."""
    found: dict[str, Any] = {}
    for metric in metrics:
        value = vllm.VLLM.value(metric, sample)
        if isinstance(value, Mapping):
            found |= {f"{statistic}_{metric.name}": each for statistic, each in value.items()}
        else:
            found[metric.name] = value if value is None or isfinite(value) else 0.0
    return found


def _per_request(sample: Sample, tables: Tables) -> dict[str, list[Any]]:
    table = tables.request_table
    order = np.argsort(table.column("request_id"), kind="stable")
    completed = np.flatnonzero(table.column("status")[order] == COMPLETED)

    def filled(values: NDArray[Any]) -> list[Any]:
        found = np.zeros(len(order), values.dtype)
        found[completed] = values
        entries: list[Any] = found.tolist()
        return entries

    itls: list[list[float]] = [[] for _ in order]
    for index, gaps_s in zip(completed.tolist(), sample.times.inter_token_s(), strict=True):
        itls[index] = gaps_s.tolist()
    waited = "client_queue_s" in table.names
    return {
        "input_lens": table.column("input_tokens")[order].tolist(),
        "output_lens": filled(sample.output_tokens),
        "ttfts": filled(sample.ttft_s),
        "itls": itls,
        "latencies": filled(sample.e2e_s),
        "start_times": table.column("sent_s")[order].tolist(),
        "queue_times": table.column("client_queue_s")[order].tolist() if waited else [0.0] * len(order),
        "generated_texts": [""] * len(order),
        "errors": _errors(table.column("status")[order], table.column("reason")[order]),
    }


def _errors(status: Any, reason: Any) -> list[str]:
    """Return what kept each request from completing; nothing of one that did."""
    words = zip(status.tolist(), reason.tolist(), strict=True)
    return ["" if state == COMPLETED else f"{STATUSES[state]} {REASONS[why]}".strip() for state, why in words]


def _finite(value: float) -> float | str:
    return value if isfinite(value) else "inf"
