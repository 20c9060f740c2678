"""A queue in the order of a key is a deque where all keys are equal."""

from collections import deque
from random import Random

from servesim.engine.queue_order.sorted_queue import SortedQueue
from servesim.workload.request import Request


def request(number: int) -> Request:
    return Request(number, 0.0, 1, 1)


def test_of_equal_keys_it_is_a_deque() -> None:
    """A thousand arrivals, returns, admissions and losses at random."""
    random, queue, plain = Random(0), SortedQueue(lambda request: 0.0), deque[Request]()
    for number in range(1000):
        act = random.choice(("append", "append", "appendleft", "popleft", "remove"))
        if act.startswith("append"):
            new = request(number)
            getattr(queue, act)(new)
            getattr(plain, act)(new)
        elif plain and act == "popleft":
            assert queue[0] is plain[0]
            assert queue.popleft() is plain.popleft()
        elif plain:
            gone = random.choice(list(plain))
            queue.remove(gone)
            plain.remove(gone)
        assert list(queue) == list(plain)
        assert (len(queue), bool(queue)) == (len(plain), bool(plain))


def test_the_least_key_is_the_head() -> None:
    queue = SortedQueue(lambda request: -request.id)
    for number in (1, 3, 2):
        queue.append(request(number))
    assert [queue[0].id, queue[1].id] == [3, 2]
    assert [queue.popleft().id for _ in range(3)] == [3, 2, 1]
