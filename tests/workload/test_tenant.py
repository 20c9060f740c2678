"""Tenants: shares, classes, and a stream of their own."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from servesim.check import ConfigError, check
from servesim.streams import Streams
from servesim.workload.arrivals import Poisson
from servesim.workload.lengths import Geometric
from servesim.workload.origin import Origin
from servesim.workload.synthetic import Synthetic
from servesim.workload.tenant import Tenant, Tenants, draw_tenants, tenant_origins
from tests.workload.theory import SAMPLES, SIGMAS

TENANTS = {"paid": Tenant(1.0, priority=-1, slack_s=0.5), "free": Tenant(3.0, weight=0.5)}


def traffic(tenants: Tenants) -> Synthetic:
    return Synthetic(Poisson(4.0), Geometric(50.0, 20.0), 500, tenants=tenants)


def test_each_tenant_sends_its_share() -> None:
    drawn = np.array(draw_tenants(TENANTS, Streams(0))(SAMPLES))
    assert abs(drawn.mean() - 3 / 4) <= SIGMAS * (3 / 16 / SAMPLES) ** 0.5


def test_a_request_has_the_number_the_class_and_the_slack_of_its_tenant() -> None:
    first, second = tenant_origins(TENANTS)
    assert first == Origin(tenant=0, priority=-1, slack_s=0.5)
    assert second == Origin(tenant=1, slack_s=inf, weight=0.5)


def test_tenants_leave_times_and_lengths_alone() -> None:
    (plain,), (shared,) = (list(traffic(tenants).batches(Streams(1))) for tenants in ({}, TENANTS))
    assert plain.origins is None
    assert [one.tolist() for one in plain[:3]] == [one.tolist() for one in shared[:3]]
    assert shared.origins is not None
    assert {origin.tenant for origin in shared.origins} == {0, 1}
    assert len(shared.origins) == shared.size


def test_what_is_wrong_with_a_tenant_is_told_with_its_name() -> None:
    with pytest.raises(ConfigError) as refused:
        check(traffic({"paid": Tenant(0.0), "free": Tenant(slack_s=-1.0)}), "workload")
    assert [problem.path for problem in refused.value.problems] == [
        "workload.tenants.paid.share",
        "workload.tenants.free.slack_s",
    ]
