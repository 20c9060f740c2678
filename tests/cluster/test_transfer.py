"""KV on its way: links that are shared equally at both ends."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from servesim.check import problems
from servesim.cluster.deployment import Deployment
from servesim.cluster.transfer import Links, Transfer, TransferOverhead
from servesim.config.loading import load
from servesim.engine.clock import Clock
from tests.cost.shipped import CONF
from tests.results.made import GPU, pool

Sending = tuple[float, int, int, float]
"""When a transfer is asked for (s), its source, its target, its bytes."""


def landings(
    *sendings: Sending,
    egress: tuple[float, ...] = (100.0,),
    ingress: tuple[float, ...] = (100.0,),
    latency_s: float = 0.0,
) -> list[float]:
    """Return when each transfer has landed, over links of 100 bytes/s unless told otherwise."""
    clock, landed = Clock(), [-1.0] * len(sendings)
    links = Links(clock, list(egress), list(ingress), latency_s)

    def ask(number: int, source: int, target: int, size_bytes: float) -> None:
        links.send(source, target, size_bytes, lambda: landed.__setitem__(number, clock.now))

    for number, (sent_s, *sending) in enumerate(sendings):
        clock.call_at(sent_s, lambda number=number, sending=sending: ask(number, *sending))
    clock.run_until()
    return landed


# ---- alone -----------------------------------------------------------------------------------------


def test_a_transfer_takes_its_bytes_over_the_bandwidth() -> None:
    assert landings((1.0, 0, 0, 250.0)) == [3.5]


def test_the_narrower_end_decides() -> None:
    assert landings((0.0, 0, 0, 100.0), egress=(50.0,)) == [2.0]
    assert landings((0.0, 0, 0, 100.0), ingress=(25.0,)) == [4.0]


def test_latency_comes_before_the_first_byte() -> None:
    assert landings((0.0, 0, 0, 100.0), latency_s=0.25) == [1.25]


def test_transfers_between_other_ends_do_not_matter() -> None:
    pair = (0.0, 0, 0, 100.0), (0.0, 1, 1, 100.0)
    assert landings(*pair, egress=(100.0, 100.0), ingress=(100.0, 100.0)) == [1.0, 1.0]


# ---- shared ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "target"), [(0, 1), (1, 0), (0, 0)], ids=["one source", "one target", "both"]
)
def test_two_equal_transfers_that_share_an_end_take_twice_as_long(source: int, target: int) -> None:
    wide = {"egress": (100.0, 100.0), "ingress": (100.0, 100.0)}
    assert landings((0.0, 0, 0, 100.0), (0.0, source, target, 100.0), **wide) == [2.0, 2.0]


def test_what_one_leaves_the_other_takes() -> None:
    """100 and 300 bytes at 50 bytes/s each: one lands at 2, the other moves its last 200 at 100 bytes/s."""
    assert landings((0.0, 0, 0, 100.0), (0.0, 0, 0, 300.0)) == [2.0, 4.0]


def test_a_newcomer_slows_the_other_down() -> None:
    """Alone the first moves 100 of 200 bytes by 1; together both need 2 s for another 100."""
    assert landings((0.0, 0, 0, 200.0), (1.0, 0, 0, 100.0)) == [3.0, 3.0]


def test_the_latency_of_a_newcomer_slows_nobody_down() -> None:
    """Its bytes set out at 2, when the first has just landed."""
    assert landings((0.0, 0, 0, 100.0), (1.0, 0, 0, 100.0), latency_s=1.0) == [2.0, 3.0]


def test_the_more_crowded_end_decides() -> None:
    """Three sources to one target get a third each, although one of them shares its source with nobody else.

    The fourth leaves source 0 for another target: source 0 gives it half, not what target 0 leaves over.
    """
    wide = {"egress": (100.0, 100.0, 100.0), "ingress": (100.0, 100.0)}
    sendings = [(0.0, source, 0, 100.0) for source in range(3)] + [(0.0, 0, 1, 100.0)]
    assert landings(*sendings, **wide) == pytest.approx([3.0, 3.0, 3.0, 2.0])


def test_equals_land_at_one_instant() -> None:
    """To the last bit, although thirds are not exact."""
    landed = landings(*[(0.1, 0, 0, 100.0)] * 3)
    assert landed[0] == landed[1] == landed[2] == pytest.approx(3.1)


def test_a_landing_may_start_a_transfer() -> None:
    clock, landed = Clock(), []
    links = Links(clock, [100.0], [100.0], 0.0)

    def again() -> None:
        landed.append(clock.now)
        if len(landed) < 3:
            links.send(0, 0, 100.0, again)

    clock.call_at(0.0, lambda: links.send(0, 0, 100.0, again))
    clock.run_until()
    assert landed == [1.0, 2.0, 3.0]


@given(
    sendings=st.lists(
        st.tuples(
            st.sampled_from((0.0, 0.3, 1.0, 2.5)), st.integers(0, 1), st.integers(0, 1), st.floats(1.0, 500.0)
        ),
        min_size=1,
        max_size=8,
    )
)
def test_links_never_carry_more_than_they_can(sendings: list[Sending]) -> None:
    """All land; none before its bytes could be there alone; an end that sends without a pause is full."""
    sendings.sort(key=lambda sending: sending[0])
    landed = landings(*sendings, egress=(100.0, 100.0), ingress=(100.0, 100.0))
    for (sent_s, _, _, size_bytes), landed_s in zip(sendings, landed, strict=True):
        assert landed_s >= sent_s + size_bytes / 100.0 - 1e-9
    for end in (1, 2):
        for link in (0, 1):
            mine = [number for number, sending in enumerate(sendings) if sending[end] == link]
            if mine:
                carried = sum(sendings[number][3] for number in mine)
                assert max(landed[number] for number in mine) >= sendings[mine[0]][0] + carried / 100.0 - 1e-9


@given(sizes=st.lists(st.floats(1.0, 500.0), min_size=1, max_size=8))
def test_a_shared_link_is_never_idle(sizes: list[float]) -> None:
    """Sent at once over one link, the last lands when all bytes have passed, and the smallest lands first."""
    landed = landings(*[(0.0, 0, 0, size) for size in sizes])
    assert max(landed) == pytest.approx(sum(sizes) / 100.0)
    assert landed[sizes.index(min(sizes))] == min(landed) == pytest.approx(len(sizes) * min(sizes) / 100.0)


# ---- which link ------------------------------------------------------------------------------------

LINKED = replace(
    GPU,
    nvlink_bytes_per_s=8.0,
    pcie_bytes_per_s=2.0,
    nic_bytes_per_s=1.0,
    nvlink_latency_s=0.25,
    nic_latency_s=0.5,
)


@pytest.mark.parametrize(
    ("link", "one_node", "bandwidth", "latency_s"),
    [
        ("auto", True, 8.0, 0.25),
        ("auto", False, 1.0, 0.5),
        ("nvlink", False, 8.0, 0.25),
        ("nic", True, 1.0, 0.5),
        ("pcie", False, 2.0, 0.25),
    ],
)
def test_the_link_has_the_figures_of_the_gpu(
    link: str, one_node: bool, bandwidth: float, latency_s: float
) -> None:
    transfer = Transfer(link=link)
    assert transfer.bandwidth(LINKED, one_node) == bandwidth
    assert transfer.latency(LINKED, one_node) == latency_s


def test_figures_of_the_users_own() -> None:
    transfer = Transfer(bandwidth_bytes_per_s=3.0, latency_s=0.0)
    assert transfer.bandwidth(LINKED, True) == 3.0
    assert transfer.latency(LINKED, True) == 0.0


OVERHEAD = TransferOverhead("", nic_efficiency=0.5, nic_setup_s=0.125)


@pytest.mark.parametrize("link", ["nic", "nvlink", "pcie"])
def test_only_the_nic_loses_to_the_overhead(link: str) -> None:
    plain, burdened = (Transfer(link=link, overhead=overhead) for overhead in (None, OVERHEAD))
    lost = link == "nic"
    assert burdened.bandwidth(LINKED, False) == plain.bandwidth(LINKED, False) * (0.5 if lost else 1.0)
    assert burdened.latency(LINKED, False) == plain.latency(LINKED, False) + (0.125 if lost else 0.0)


def test_figures_of_the_users_own_stand_in_place_of_the_overhead() -> None:
    transfer = Transfer(link="nic", bandwidth_bytes_per_s=3.0, latency_s=0.25, overhead=OVERHEAD)
    assert transfer.bandwidth(LINKED, False) == 3.0
    assert transfer.latency(LINKED, False) == 0.25


@given(
    efficiency=st.floats(0.01, 1),
    better=st.floats(1, 2),
    setup_s=st.floats(0, 1),
    longer_s=st.floats(0, 1),
    size_bytes=st.floats(1, 1e3),
)
def test_a_transfer_takes_no_longer_with_less_overhead(
    efficiency: float, better: float, setup_s: float, longer_s: float, size_bytes: float
) -> None:
    """Never faster than the line rate; a better efficiency and a shorter setup never make it slower."""

    def seconds(overhead: TransferOverhead | None) -> float:
        transfer = Transfer(link="nic", overhead=overhead)
        return size_bytes / transfer.bandwidth(LINKED, False) + transfer.latency(LINKED, False)

    taken_s = seconds(TransferOverhead("", efficiency, setup_s))
    assert taken_s >= seconds(None)
    assert seconds(TransferOverhead("", min(efficiency * better, 1.0), setup_s)) <= taken_s
    assert seconds(TransferOverhead("", efficiency, setup_s + longer_s)) >= taken_s


def test_the_fitted_overhead_is_the_default_between_nodes() -> None:
    """Two H100 nodes: 50 GB/s x 0.698 for each GPU, after 5 us and the setup."""
    across = ("scheduler=disaggregated", "cluster.transfer.link=nic")
    fitted = TransferOverhead(**yaml.safe_load((CONF / "transfer_overhead" / "mooncake.yaml").read_text()))
    assert not list(problems(fitted))
    assert load(*across).transfer() == {
        "link": "nic",
        "bandwidth_bytes_per_s": pytest.approx(fitted.nic_efficiency * 50e9),
        "latency_s": pytest.approx(5e-6 + fitted.nic_setup_s),
    }
    line_rate = load(*across, "cluster.transfer.overhead=null").transfer()
    assert line_rate == {"link": "nic", "bandwidth_bytes_per_s": 50e9, "latency_s": 5e-6}
    assert load("scheduler=disaggregated").transfer() == {
        "link": "nvlink",
        "bandwidth_bytes_per_s": 450e9,
        "latency_s": 0.6e-6,
    }


def test_a_replica_sends_over_the_links_of_all_its_gpus() -> None:
    """Two GPUs of 8 bytes/s each: 32 bytes take 2 s, and the latency of the slower end."""
    prefill: Deployment = pool("prefill", replicas=1, gpu=LINKED)
    slower = replace(LINKED, nvlink_latency_s=0.75)
    decode: Deployment = pool("decode", first_replica=1, replicas=1, gpu=slower)
    clock, landed = Clock(), []
    links = Links.between(clock, prefill, decode, Transfer(), one_node=True)
    links.send(0, 0, 32.0, lambda: landed.append(clock.now))
    clock.run_until()
    assert landed == [2.75]
