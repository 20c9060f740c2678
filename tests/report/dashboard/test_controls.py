"""Every value of the state has a control that can hold it."""

import pytest

pytest.importorskip("dash", reason="needs dash, of the extra dashboard")

from servesim.config.groups import Groups
from servesim.report.dashboard.controls import (
    CONTROLS,
    LENGTHS,
    MENUS,
    SLIDERS,
    in_control,
    options,
    position,
    sidebar,
    slid,
)
from servesim.report.dashboard.state import KINDS, B, State


def test_every_value_of_the_state_has_one_control() -> None:
    page = sidebar(["a sweep"])
    for name in KINDS:
        assert sum(getattr(each, "id", None) == name for each in page._traverse()) == 1


def test_menus_offer_what_the_state_starts_with() -> None:
    for name, control in CONTROLS.items():
        if control.options:
            value = State().values()[name]
            assert (str(value) in control.options) if value is not None else control.empty


@pytest.mark.parametrize("name", MENUS)
@pytest.mark.parametrize("value", ["bogus", 3, None])
def test_a_menu_offers_what_it_holds(name: str, value: str | int | None) -> None:
    offered = [each["value"] for each in options(name, value, ["a sweep"])]
    assert offered.count(in_control(name, value)) == 1


@pytest.mark.parametrize("lengths", LENGTHS)
def test_all_lengths_on_offer_are_configuration_files(lengths: str) -> None:
    assert lengths in Groups.of(None).options("workload/lengths")


@pytest.mark.parametrize("name", SLIDERS)
def test_a_slider_stands_where_its_value_is(name: str) -> None:
    ends = CONTROLS[name.removeprefix(B)].ends
    assert ends is not None
    low, high = ends
    for value in (low, (low * high) ** 0.5, high):
        assert slid(position(name, value)) == pytest.approx(value, rel=0.005)
    assert position(name, None) == position(name, low / 2) == position(name, low)
    assert position(name, high * 2) == position(name, high)
