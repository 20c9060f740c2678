"""The router that keeps conversations where they are."""

from __future__ import annotations

from servesim.cluster.disaggregated import Disaggregated
from servesim.cluster.router import SessionSticky
from servesim.workload.origin import Origin
from tests.cluster.router.views import Pool, request
from tests.serving import Service


def turns(router: SessionSticky, pool: Pool, *sessions: int) -> list[int]:
    """Return the replicas of requests of these sessions, none of which ever ends."""
    pick = pool.start(router)
    return [pick(request(Origin(session=session))) for session in sessions]


def test_a_session_stays_where_it_began() -> None:
    assert turns(SessionSticky(), Pool([0, 0, 0]), 7, 8, 7, 7, 9, 8, 7) == [0, 1, 0, 0, 2, 1, 0]


def test_requests_without_a_session_go_to_the_least_loaded() -> None:
    assert turns(SessionSticky(), Pool([1, 0]), -1, -1, -1, -1) == [1, 0, 1, 0]


def test_a_session_moves_from_a_replica_with_more_than_so_many_more() -> None:
    """Its third turn would find 2 against 0, and its home is then the other replica."""
    assert turns(SessionSticky(max_imbalance=2), Pool([0, 0]), 1, 1, 1, 1, 1) == [0, 0, 0, 1, 1]
    assert turns(SessionSticky(max_imbalance=0), Pool([0, 0, 0]), 1, 1, 1, 1) == [0, 1, 2, 2]


def test_the_session_that_has_been_silent_longest_is_forgotten() -> None:
    """When session 3 comes, session 2 is forgotten; it begins anew where the fewest are by then."""
    assert turns(SessionSticky(remembers=2), Pool([0, 0, 0]), 1, 2, 2, 1, 3, 1, 2) == [0, 1, 1, 0, 2, 0, 2]
    assert turns(SessionSticky(remembers=3), Pool([0, 0, 0]), 1, 2, 2, 1, 3, 1, 2) == [0, 1, 1, 0, 2, 0, 1]


def test_a_session_has_a_home_in_each_of_two_pools() -> None:
    origins = [Origin(session=turn % 2) for turn in range(6)]
    service = Service(Disaggregated(), replicas=2, decode_replicas=2, router=SessionSticky(), origins=origins)
    rows = service.serve([(0.1 * turn, 8, 50) for turn in range(6)]).by_id
    for pool in ("prefill_replica", "replica"):
        homes = [{row[pool] for row in rows[session::2]} for session in (0, 1)]
        assert [len(home) for home in homes] == [1, 1]
    assert len({row["replica"] for row in rows}) == 2
