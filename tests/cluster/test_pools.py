"""Pools and nodes."""

from __future__ import annotations

import dataclasses

import pytest

from servesim.check import ConfigError, check
from servesim.cluster.pools import Pool, PrefillDecode
from servesim.cluster.transfer import Transfer
from tests.results.made import GPU


def test_gpus_of_a_pool() -> None:
    assert Pool(replicas=3, tensor_parallel_size=4).gpus == 12


def test_a_replica_stays_inside_a_node() -> None:
    with pytest.raises(ConfigError, match="tensor_parallel_size = 16: must be at most gpus_per_node, 8"):
        check(Pool(tensor_parallel_size=16))
    check(Pool(tensor_parallel_size=16, gpus_per_node=16))


def test_what_a_pool_refuses() -> None:
    with pytest.raises(ConfigError) as error:
        check(Pool(replicas=0, tensor_parallel_size=-1, gpus_per_node=0))
    assert [problem.path for problem in error.value.problems] == [
        "replicas",
        "tensor_parallel_size",
        "gpus_per_node",
    ]


@pytest.mark.parametrize(
    ("prefill", "decode", "one_node"),
    [
        (Pool(1, 4), Pool(1, 4), True),
        (Pool(2, 2), Pool(1, 4), True),
        (Pool(1, 4), Pool(1, 8), False),
        (Pool(2, 4), Pool(1, 4), False),
        (Pool(1, 8, gpus_per_node=16), Pool(1, 8, gpus_per_node=16), True),
        (Pool(1, 8, gpus_per_node=16), Pool(1, 8), False),
    ],
)
def test_two_pools_share_a_node_where_all_their_gpus_fit(prefill: Pool, decode: Pool, one_node: bool) -> None:
    assert PrefillDecode(prefill, decode, Transfer()).one_node(GPU) == one_node


def test_gpus_of_two_kinds_are_in_two_nodes() -> None:
    other = dataclasses.replace(GPU, name="other")
    assert not PrefillDecode(Pool(1, 4), Pool(1, 4, gpu=other), Transfer()).one_node(GPU)
    assert PrefillDecode(Pool(1, 4, gpu=other), Pool(1, 4, gpu=other), Transfer()).one_node(GPU)
    assert PrefillDecode(Pool(1, 4, gpu=GPU), Pool(1, 4), Transfer()).one_node(GPU)
