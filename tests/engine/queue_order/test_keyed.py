"""Orders by length and by deadline."""

from math import log
from typing import Literal

import numpy as np
import pytest

from servesim.engine.continuous import Continuous
from servesim.engine.queue_order.keyed import EarliestDeadline, ShortestFirst
from servesim.engine.queue_order.order import QueueOrder
from servesim.workload.origin import Origin
from servesim.workload.request import Request
from tests.costs import constant_step
from tests.serving import Sent, Service


def order_of_service(order: QueueOrder, *requests: Sent, origins: tuple[Origin, ...] = ()) -> list[int]:
    """Return the requests in the order in which a server of one at a time serves them."""
    service = Service(Continuous(max_num_seqs=1, queue_order=order), constant_step(0.01), origins=origins)
    return [int(row["request_id"]) for row in service.serve(requests).completed]


@pytest.mark.parametrize(
    ("by", "served"), [("input", [0, 2, 1, 3]), ("output", [0, 3, 2, 1]), ("total", [0, 2, 3, 1])]
)
def test_the_shortest_is_first(by: Literal["input", "output", "total"], served: list[int]) -> None:
    """The first is served while the others come: of 20 + 19, 3 + 8 and 30 + 1 tokens."""
    requests = (0.0, 1, 50), (0.01, 20, 19), (0.02, 3, 8), (0.03, 30, 1)
    assert order_of_service(ShortestFirst(by), *requests) == served


def test_a_predictor_errs_as_said_and_always_alike() -> None:
    """Of 10,000 requests of 100 tokens the log of the predicted ones has this deviation, within 4 sigma."""
    order, requests = ShortestFirst("output", noise=0.5), [Request(n, 0.0, 1, 100) for n in range(10_000)]
    errors = np.array([log(order.work(request) / 100) for request in requests])
    assert abs(errors.mean()) < 4 * 0.5 / 100
    assert abs(errors.std() - 0.5) < 4 * 0.5 / np.sqrt(20_000)
    assert abs(np.corrcoef(errors[1:], errors[:-1])[0, 1]) < 4 / 100
    assert [log(order.work(request) / 100) for request in requests[:9]] == errors[:9].tolist()


def test_the_earliest_deadline_is_first() -> None:
    """Wanted by 9.01, 1.02, never and 1.015 s."""
    requests = (0.0, 1, 50), (0.01, 1, 1), (0.02, 1, 1), (0.025, 1, 1), (0.03, 1, 1)
    origins = Origin(), Origin(slack_s=9.0), Origin(slack_s=1.0), Origin(), Origin(slack_s=0.985)
    assert order_of_service(EarliestDeadline(), *requests, origins=origins) == [0, 4, 2, 1, 3]
