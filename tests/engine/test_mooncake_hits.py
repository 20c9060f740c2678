"""Prefix caching on a trace of Mooncake finds what an independent LRU over its hashes finds."""

from __future__ import annotations

import gzip
import json
from collections import OrderedDict
from functools import cache
from typing import Any

import pytest

from servesim.engine.continuous import Continuous
from servesim.workload.origin import Origin
from tests.serving import Service
from tests.shared import shared_data

TOKENS = 512


@cache
def trace() -> list[dict[str, Any]]:
    path = shared_data("traces", "mooncake_synthetic.jsonl.gz")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def hits_of_a_queue(capacity: int) -> int:
    """Count hit tokens with a queue of free blocks, one request after the other, nothing of servesim."""
    queue: OrderedDict[object, None] = OrderedDict((object(), None) for _ in range(capacity))
    hits = 0
    for row in trace():
        ids, inputs = row["hash_ids"], row["input_length"]
        blocks = -(-(inputs + row["output_length"] - 1) // TOKENS)
        full = inputs // TOKENS
        hit = 0
        while hit < (inputs - 1) // TOKENS and ids[hit] in queue:
            hit += 1
        for known in ids[:hit]:
            del queue[known]
        for _ in range(blocks - hit):
            queue.popitem(last=False)
        others = [object() for _ in range(blocks - full)]
        for block in (*others, *reversed(ids[:full])):
            queue[block] = None
        hits += hit * TOKENS
    return hits


def origin(ids: list[int], input_tokens: int) -> Origin:
    ends = (min(place * TOKENS, input_tokens) for place in range(1, len(ids) + 1))
    return Origin(prefix=tuple(zip(ids, ends, strict=True)))


@pytest.mark.parametrize("capacity", [400, 2_000, 10_000, 50_000])
def test_hit_tokens_are_those_of_an_lru_over_the_hashes(capacity: int) -> None:
    rows = trace()
    service = Service(
        Continuous(max_num_seqs=1, block_size=TOKENS),
        kv_blocks=capacity,
        origins=[origin(row["hash_ids"], row["input_length"]) for row in rows],
    )
    run = service.serve([(0.0, row["input_length"], row["output_length"]) for row in rows])
    assert len(run.completed) == len(rows)
    hits = sum(row["cached_tokens"] for row in run.completed)
    assert hits == hits_of_a_queue(capacity) > 0
