"""Replays of measured requests: every one is sent, in order, at its time or by its user."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from servesim.check import ConfigError, check
from servesim.streams import Streams
from servesim.workload.batch import BATCH_ROWS, Batch
from servesim.workload.replay import Replay

COUNT = BATCH_ROWS + 5
WHOLE = Replay(np.arange(COUNT) / 8, np.full(COUNT, 3), np.arange(1, COUNT + 1))


def sent(replay: Replay) -> Batch:
    return Batch.joined(replay.batches(Streams(0)))


def test_every_request_is_sent_once_at_its_time() -> None:
    check(WHOLE)
    batch = sent(WHOLE)
    assert batch.sent_s.tolist() == WHOLE.sent_s.tolist()
    assert batch.output_tokens.tolist() == WHOLE.output_tokens.tolist()
    assert WHOLE.open_loop


def test_at_once_the_requests_keep_their_order_and_all_are_due_at_0() -> None:
    burst = replace(WHOLE, at_once=True)
    batch = sent(burst)
    assert not batch.sent_s.any()
    assert not burst.open_loop
    assert batch.output_tokens.tolist() == WHOLE.output_tokens.tolist()


def test_requests_end_the_sending() -> None:
    assert sent(replace(WHOLE, requests=7)).size == 7


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"sent_s": np.arange(COUNT)[::-1].astype(float)}, "sent_s"),
        ({"sent_s": np.arange(COUNT) - 1.0}, "sent_s"),
        ({"sent_s": np.full(COUNT, np.nan)}, "sent_s"),
        ({"sent_s": np.arange(3.0)}, "sent_s"),
        ({"input_tokens": np.zeros(COUNT, dtype=np.int64)}, "input_tokens"),
        ({"output_tokens": np.full(COUNT, 10**8)}, "output_tokens"),
    ],
)
def test_what_is_no_request_is_refused(change: dict[str, np.ndarray], path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check(replace(WHOLE, **change))  # type: ignore[arg-type]
    assert [problem.path for problem in caught.value.problems] == [path]
