"""What holds for every router."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from servesim.config.kinds import KINDS
from servesim.engine.continuous import Continuous
from servesim.workload.origin import Origin
from tests.serving import Row, Service

ROUTERS: list[Any] = list(KINDS["router"].values())
SENT = [(0.05 * number, 50 + 13 * (number % 11), 20 + 7 * (number % 6)) for number in range(80)]
ORIGINS = [Origin(session=number % 9, prefix=((number % 4, 40),), stream=number % 9) for number in range(80)]


def served(router: Any, replicas: int = 3, seed: int = 0) -> list[Row]:
    """Serve some conversations."""
    service = Service(Continuous(), replicas=replicas, router=router, origins=ORIGINS, seed=seed)
    return service.serve(SENT).by_id


@pytest.mark.parametrize("router", ROUTERS)
def test_it_depends_on_the_seed_alone_and_leaves_nobody_idle(router: Any) -> None:
    rows = served(router())
    assert rows == served(router())
    assert {row["replica"] for row in rows} == {0, 1, 2}


@pytest.mark.parametrize("router", ROUTERS)
def test_of_one_replica_there_is_no_choice(router: Any) -> None:
    late = {"delay_s": 0.3} if "delay_s" in {field.name for field in fields(router)} else {}
    assert served(router(), replicas=1) == served(router(**late), replicas=1)
