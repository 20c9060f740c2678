"""What the host spends on launches: kernels one by one, or all of them as one CUDA graph."""

from __future__ import annotations

import torch

from calibration.measure.bench import Bench, Prepared
from calibration.measure.case import Case


def prepare(case: Case, bench: Bench) -> Prepared:
    """Return the launch of ``kernels`` additions of one number; its time is the host's."""
    number = torch.zeros(1, device=bench.device)

    def eager() -> None:
        for _ in range(case["kernels"]):
            number.add_(1)

    if case["mode"] == "eager":
        return Prepared((eager,), "torch_add", on_host=True)
    bench.need_gpu("a CUDA graph")
    eager()
    torch.cuda.synchronize(bench.device)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        eager()
    return Prepared((graph.replay,), "torch_cuda_graph", on_host=True)
