"""The ring all-reduce."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.cost.interconnect import all_reduce_seconds, all_reduce_sent_bytes
from tests.cost.shipped import gpu


def test_four_gpus_by_hand() -> None:
    """1 MB over 4 GPUs: each sends 2 x 3/4 x 1 MB = 1.5 MB, 3.33 us at 450 GB/s, in 6 hops of 0.6 us."""
    h100 = gpu("h100-sxm")
    assert all_reduce_sent_bytes(1e6, 4) == 1.5e6
    assert all_reduce_seconds(1e6, 4, h100) == pytest.approx(1.5e6 / 450e9 + 6 * 0.6e-6)


def test_one_gpu_has_nothing_to_reduce() -> None:
    assert all_reduce_seconds(1e9, 1, gpu("h100-sxm")) == 0


def test_arrays_and_numbers_agree() -> None:
    h100, sizes = gpu("h100-sxm"), np.array([0.0, 1e3, 1e9])
    assert all_reduce_seconds(sizes, 8, h100).tolist() == [
        all_reduce_seconds(size, 8, h100) for size in sizes
    ]


@given(size=st.floats(0, 1e10), gpus=st.integers(1, 16), factor=st.floats(1, 100))
def test_faster_links_larger_messages_more_gpus(size: float, gpus: int, factor: float) -> None:
    slow = gpu("a100-sxm-80gb")
    fast = gpu("a100-sxm-80gb", nvlink_bytes_per_s=slow.nvlink_bytes_per_s * factor)
    seconds = all_reduce_seconds(size, gpus, slow)
    assert all_reduce_seconds(size, gpus, fast) <= seconds
    assert all_reduce_seconds(size * factor, gpus, slow) >= seconds
    assert all_reduce_seconds(size, gpus + 1, slow) >= seconds
    assert seconds >= all_reduce_sent_bytes(size, gpus) / slow.nvlink_bytes_per_s
