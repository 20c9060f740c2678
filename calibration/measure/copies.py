"""Copies within the device, between it and the host, and within the host."""

from __future__ import annotations

from functools import partial

import torch

from calibration.measure.bench import Bench, Prepared
from calibration.measure.case import Case


def prepare(case: Case, bench: Bench) -> Prepared:
    """Return copies of ``bytes`` from changing sources; host memory is pinned where a GPU takes part."""
    gpu, host = bench.device, torch.device("cpu")
    if case["direction"] == "host":
        return _copies(case, bench, host, host)
    bench.need_gpu(f"a copy, {case['direction'].replace('_', ' ')}")
    ends = {"device": (gpu, gpu), "host_to_device": (host, gpu), "device_to_host": (gpu, host)}
    return _copies(case, bench, *ends[case["direction"]])


def _copies(case: Case, bench: Bench, source: torch.device, target: torch.device) -> Prepared:
    def buffer(place: torch.device) -> torch.Tensor:
        pinned = place.type == "cpu" and not bench.is_cpu
        return torch.empty(case["bytes"], dtype=torch.uint8, device=place, pin_memory=pinned)

    into = buffer(target)
    sources = [buffer(source).random_(0, 256) for _ in range(bench.copies(case))]
    return Prepared(tuple(partial(into.copy_, each, non_blocking=True) for each in sources), "torch_copy")
