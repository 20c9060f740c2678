"""Blocks that requests share: what is found is right, and nothing is lost or held twice."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servesim.engine.continuous import Continuous
from servesim.workload.origin import Origin
from tests.laws.cases import Case, cases
from tests.laws.holdings import held_blocks, shared_blocks
from tests.laws.test_prefix_caching import computed_tokens, same, with_caching
from tests.oracle.origins import draw_origins
from tests.serving import Run, Service

KINDS = ("continuous", "disaggregated")


def with_origins(case: Case, origins: tuple[Origin, ...]) -> Case:
    return replace(case, service=replace(case.service, origins=origins))


def sharing(data: st.DataObject, kind: str, *, roomy: bool = False) -> Case:
    """Draw a case whose prompts have much in common."""
    case = data.draw(cases(kind, roomy=roomy))
    random = data.draw(st.randoms(use_true_random=False))
    origins = draw_origins(random, case.traffic)
    return with_origins(case, tuple(origin._replace(session=-1) for origin in origins))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(data=st.data())
def test_where_no_two_prompts_share_it_is_as_if_none_was_asked(kind: str, data: st.DataObject) -> None:
    """A key for each request, in memory so tight that requests lose their blocks, changes no byte."""
    case = data.draw(cases(kind))
    alone = tuple(Origin(prefix=((-1 - i, 1),), stream=i) for i, _ in enumerate(case.traffic))
    assert same(with_origins(case, alone).serve(), case.serve())


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(data=st.data())
def test_what_is_left_of_the_preempted_is_the_same_to_those_who_look_for_others(
    kind: str, data: st.DataObject
) -> None:
    """The two ways to keep account of what is in free blocks agree where no request shares anything."""
    case = data.draw(cases(kind))
    alone = case.serve()
    looking = replace(case, service=replace(case.service, looks_for_others=True)).serve()
    assert same(looking, alone)
    assert looking.cluster.evicted_blocks == alone.cluster.evicted_blocks


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(data=st.data())
def test_with_ample_kv_each_prompt_is_found_or_computed(kind: str, data: st.DataObject) -> None:
    """Every token of every prompt once, and one per request that goes on in another pool.

    What is found is whole blocks, and never the last token.
    """
    case = sharing(data, kind, roomy=True)
    run, block_size = case.serve(), case.service.scheduler.block_size
    handed_over = sum(row["prefill_replica"] >= 0 and row["replica"] >= 0 for row in run.completed)
    found = sum(row["cached_tokens"] for row in run.completed)
    assert found + computed_tokens(run) == sum(row["input_tokens"] for row in run.completed) + handed_over
    for row in run.completed:
        assert row["cached_tokens"] % block_size == 0
        assert row["cached_tokens"] < row["input_tokens"]


@settings(max_examples=40)
@given(data=st.data())
def test_nothing_is_held_or_free_twice(data: st.DataObject) -> None:
    """At every instant free blocks and distinct held ones are all there are; at the end all are free."""
    case = sharing(data, "continuous")
    run = case.open()
    for _ in run.instants():
        for engine in run.engines:
            held = held_blocks(engine, run.seen) - shared_blocks(engine)
            assert engine.kv.free + held == engine.kv.blocks
    run.finish()
    assert all(engine.kv.free == engine.kv.blocks for engine in run.engines)


@settings(max_examples=40)
@given(data=st.data())
def test_off_is_as_if_prompts_had_nothing_in_common(data: st.DataObject) -> None:
    case = sharing(data, "continuous")
    plain = with_origins(case, ())
    assert same(with_caching(case, False), with_caching(plain, False))


def test_what_is_found_is_the_longest_beginning_that_came_before() -> None:
    """One after the other with all the memory in the world: a few hundred prompts of two-way branches."""
    random, block = Random(0), 4
    paths = [[random.random() < 0.3 for _ in range(random.randint(1, 12))] for _ in range(300)]
    run = serve_paths(paths, block)
    for i, row in enumerate(run.by_id):
        longest = max((common(paths[i], earlier) for earlier in paths[:i]), default=0)
        assert row["cached_tokens"] == min(longest, len(paths[i]) - 1) * block


def serve_paths(paths: list[list[bool]], block: int) -> Run:
    """Serve prompts of one block per branch, each block one of two that may follow those before it."""
    origins = []
    for path in paths:
        key, prefix = 1, list[tuple[int, int]]()
        for place, branch in enumerate(path, 1):
            key = 2 * key + branch
            prefix.append((key, place * block))
        origins.append(Origin(prefix=tuple(prefix)))
    service = Service(Continuous(max_num_seqs=1, block_size=block), origins=origins)
    return service.serve([(0.0, len(path) * block, 3) for path in paths])


def common(one: list[bool], other: list[bool]) -> int:
    """Return how many branches two paths have in common from the first one on."""
    same_so_far: list[Any] = [a == b for a, b in zip(one, other, strict=False)]
    return same_so_far.index(False) if False in same_so_far else len(same_so_far)


def test_a_second_request_of_one_step_finds_what_the_first_computes_in_it() -> None:
    """As in vLLM V1, whose blocks are known from when they are scheduled."""
    origins = [Origin(prefix=((1, 32),))] * 2
    run = Service(Continuous(block_size=16), origins=origins).serve([(0.0, 33, 1), (0.0, 33, 1)])
    assert [row["cached_tokens"] for row in run.by_id] == [0, 32]
    assert [leap["prefill_tokens"] for leap in run.leaps] == [34]


def test_a_hit_may_be_longer_than_a_chunk() -> None:
    """1,000 tokens found behind a budget of 64 a step: the second prompt is done in its first step."""
    limits = Continuous(max_num_batched_tokens=64, block_size=8)
    service = Service(limits, origins=[Origin(prefix=((1, 1000),))] * 2)
    run = service.serve([(0.0, 1010, 1), (10.0, 1010, 1)])
    assert [row["cached_tokens"] for row in run.by_id] == [0, 1000]
    assert [leap["prefill_tokens"] for leap in run.leaps][-2:] == [1010 % 64, 10]
