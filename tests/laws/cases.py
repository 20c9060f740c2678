"""Random services and traffic for the laws: small enough to shrink, tight enough to hurt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, product
from math import ceil
from typing import Any

from hypothesis import strategies as st

from servesim.cluster.disaggregated import Disaggregated
from servesim.cluster.router import LeastOutstanding, Random, RoundRobin
from servesim.engine.continuous import Continuous
from servesim.engine.static import Static
from tests.costs import AffineStepTime
from tests.serving import Run, Sent, Service

KINDS = ("continuous", "static", "disaggregated")

Draw = Callable[[st.SearchStrategy[Any]], Any]

#: Each term is absent in some; the slope in context breaks in others.
STEP_TIMES = st.sampled_from(
    (
        AffineStepTime(step_s=0.01),
        AffineStepTime(step_s=0.023, prefill_token_s=1e-4),
        AffineStepTime(
            step_s=0.01, sequence_s=3e-4, context_s=1e-5, prefill_token_s=1e-4, cached_token_s=1e-5
        ),
        AffineStepTime(step_s=0.0173, context_s=3e-4, breaks=((30, 2e-5),)),
        AffineStepTime(step_s=0.01, sequence_s=1e-3, breaks=((20, 2e-4), (90, 5e-5))),
    )
)
#: Some arrivals come at the end of a step, or just after it.
GAPS_S = (0.0, 0.0, 0.003, 0.01, 0.01 + 6e-8, 0.07, 1.0)
TOKENS = (1, 2, 4, 7, 16, 17, 33, 60)
TRAFFIC = st.lists(st.sampled_from(tuple(product(GAPS_S, TOKENS, TOKENS))), min_size=1, max_size=14)


@dataclass(frozen=True)
class Case:
    """A service and the traffic that it gets."""

    service: Service
    traffic: tuple[Sent, ...]

    def serve(self, horizon_s: float | None = None) -> Run:
        """Serve the traffic."""
        return self.service.serve(self.traffic, horizon_s=horizon_s)

    def open(self) -> Run:
        """Return the run before anything has happened."""
        return Run(self.service, self.traffic)

    @property
    def disaggregated(self) -> bool:
        """Whether there are two pools."""
        return isinstance(self.service.scheduler, Disaggregated)


@st.composite
def cases(draw: Draw, kind: str, *, roomy: bool = False) -> Case:
    """Draw a case; a ``roomy`` one has a KV cache that never runs out, and drops and caps nothing."""
    traffic = sent(draw(TRAFFIC))
    longest = max(inputs + outputs for _, inputs, outputs in traffic)
    max_model_len = max(2, longest if roomy else draw(st.sampled_from((longest, longest, longest // 2))))
    scheduler = draw(schedulers(kind, max_model_len))
    blocks = [draw(capacities(ceil(max_model_len / scheduler.block_size), roomy)) for _ in range(2)]
    service = Service(
        scheduler,
        step_time=draw(STEP_TIMES),
        kv_blocks=blocks[0],
        replicas=draw(st.sampled_from((1, 1, 2))),
        router=draw(st.sampled_from((RoundRobin(), LeastOutstanding(), Random()))),
        max_model_len=max_model_len,
        decode_step_time=draw(STEP_TIMES),
        decode_blocks=blocks[1],
        decode_replicas=draw(st.sampled_from((1, 1, 2))),
        bytes_per_s=draw(st.sampled_from((100.0, 3000.0, 1e9))),
        latency_s=draw(st.sampled_from((1e-4, 0.03))),
    )
    return Case(service, traffic)


def sent(rows: list[tuple[float, int, int]]) -> tuple[Sent, ...]:
    """Return requests from the gaps between them (s) and their tokens."""
    moments_s = accumulate(gap_s for gap_s, _, _ in rows)
    return tuple((sent_s, *tokens) for sent_s, (_, *tokens) in zip(moments_s, rows, strict=True))


@st.composite
def schedulers(draw: Draw, kind: str, max_model_len: int) -> Static | Continuous:
    """Draw the scheduler of a kind; prompts that are not split fit into a step."""
    block_size = draw(st.sampled_from((1, 4, 16)))
    if kind == "static":
        timeout_s = draw(st.sampled_from((0.0, 0.02, 2.0)))
        return Static(draw(st.sampled_from((1, 2, 3, 8))), timeout_s, block_size=block_size)
    chunked = draw(st.booleans())
    budget = draw(st.sampled_from((1, 2, 7, 30, 8192)))
    limits = {
        "max_num_seqs": draw(st.sampled_from((1, 2, 4, 64))),
        "max_num_batched_tokens": budget if chunked else max(budget, max_model_len),
        "block_size": block_size,
        "enable_chunked_prefill": chunked,
        "enable_prefix_caching": draw(st.booleans()),
    }
    if kind == "disaggregated":
        return Disaggregated(**limits, first_token=draw(st.sampled_from(("prefill", "decode"))))
    return Continuous(**limits)


def capacities(least: int, roomy: bool) -> st.SearchStrategy[int]:
    """Draw the KV blocks of a replica, ``least`` of which hold the longest sequence."""
    return (
        st.just(100 * least)
        if roomy
        else st.sampled_from((least, least, least + 1, least + least // 2, 30 * least))
    )
