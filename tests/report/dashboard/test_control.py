"""Every value of the state has a control that can hold it."""

import pytest

pytest.importorskip("dash", reason="needs dash, of the extra dashboard")

from servesim.report.dashboard.catalogue import BLANKS, CONTROLS, MENUS, SLIDERS, control_of
from servesim.report.dashboard.control import in_control
from servesim.report.dashboard.sidebar import GROUPS, sidebar, viewed
from servesim.report.dashboard.state import KINDS, State


def test_every_value_of_the_state_has_one_control() -> None:
    page = sidebar(["a sweep"])
    for name in KINDS:
        assert sum(getattr(each, "id", None) == name for each in page._traverse()) == 1


def test_every_group_has_its_element_and_its_controls() -> None:
    elements = {getattr(each, "id", None): each for each in sidebar([])._traverse()}
    for group, names in GROUPS.items():
        inside = {getattr(each, "id", None) for each in elements[group]._traverse()}
        assert set(names) <= inside


def test_the_page_starts_with_what_the_state_shows() -> None:
    elements = {getattr(each, "id", None): each for each in sidebar([])._traverse()}
    for name in KINDS:
        if name != "sweep" and not name.startswith("b-"):
            assert elements[f"{name}-control"].hidden == (not State().shows(name))


def test_menus_offer_what_the_state_starts_with() -> None:
    for name, control in CONTROLS.items():
        if control.options:
            value = State().values()[name]
            assert (str(value) in control.options) if value is not None else control.empty


@pytest.mark.parametrize("name", MENUS)
@pytest.mark.parametrize("value", ["bogus", 3, None])
def test_a_menu_offers_what_it_holds(name: str, value: str | int | None) -> None:
    part, short = State().part(name)
    offered = [each["value"] for each in control_of(name).offered(value, part.own(short))]
    assert offered.count(in_control(value)) == 1


@pytest.mark.parametrize("value", ["", "a sweep", "gone"])
def test_the_menu_of_sweeps_offers_what_it_holds(value: str) -> None:
    assert [each["value"] for each in viewed(["a sweep"], value)].count(value) == 1


@pytest.mark.parametrize("name", BLANKS)
def test_a_blank_shows_what_the_files_say_or_what_it_means(name: str) -> None:
    control = control_of(name)
    assert control.stands_at(None) == control.empty != ""
    assert control.stands_at(12.0) == "12"


@pytest.mark.parametrize("name", SLIDERS)
def test_a_slider_stands_where_its_value_is(name: str) -> None:
    control = control_of(name)
    assert control.ends is not None
    low, high = control.ends
    for value in (low, (low * high) ** 0.5, high):
        there = control.slid(control.position(value))
        assert there == pytest.approx(value, rel=0.02 if control.kind is int else 0.005)
        assert isinstance(there, control.kind)
    assert control.position(None) == control.position(low / 2) == control.position(low)
    assert control.position(high * 2) == control.position(high)
