"""From mappings to components: each key finds its field, and every mistake is told apart."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from servesim.check import quantity
from servesim.config.build import build


@dataclass(frozen=True)
class Petrol:
    tank_l: float = quantity("l", above=0)

    hints: ClassVar[Mapping[str, str]] = {"battery_kwh": "petrol cars have tank_l"}


@dataclass(frozen=True)
class Electric:
    battery_kwh: float = quantity("kWh", above=0)
    sockets: tuple[str, ...] = quantity(default=("CCS",))
    range_km: int | None = quantity("km", at_least=1, default=None)


@dataclass(frozen=True)
class Trailer:
    length_m: float = quantity("m", above=0)


@dataclass(frozen=True)
class Car:
    engine: Petrol | Electric
    trailer: Trailer | None = None
    doors: int = quantity(at_least=1, default=4)
    manual: Path = quantity(default=Path("manual.pdf"))


KINDS = {"engine": {"petrol": Petrol, "electric": Electric}}
LATER = {"wings": "flying is"}
ELECTRIC = {"kind": "electric", "battery_kwh": 60.0}


def car(**values: Any) -> Car:
    built, found = build(Car, {"engine": ELECTRIC, **values}, KINDS, LATER)
    assert not found
    assert built is not None
    return built


def faults(**values: Any) -> list[str]:
    return [str(problem) for problem in build(Car, {"engine": ELECTRIC, **values}, KINDS, LATER)[1]]


def test_the_kind_of_a_mapping_chooses_the_class() -> None:
    assert car().engine == Electric(60.0)
    assert car(engine={"kind": "petrol", "tank_l": 40}).engine == Petrol(40)


def test_nested_mappings_become_components_and_null_stays_null() -> None:
    assert car(trailer={"length_m": 3.0}).trailer == Trailer(3.0)
    assert car(trailer=None).trailer is None


def test_values_take_the_form_of_their_field() -> None:
    built = car(
        doors=2.0, manual="a b.pdf", engine={**ELECTRIC, "sockets": ["CCS", "Schuko"], "range_km": 1e3}
    )
    assert (built.doors, built.manual) == (2, Path("a b.pdf"))
    assert built.engine == Electric(60.0, ("CCS", "Schuko"), 1000)
    assert isinstance(built.doors, int)


def test_unknown_keys_are_told_with_what_was_probably_meant() -> None:
    assert faults(door=3) == ["door = 3: unknown key; did you mean doors?"]
    assert faults(battery_kwh=3) == ["battery_kwh = 3: unknown key; did you mean engine.battery_kwh?"]
    assert faults(engin={"range_k": 3}) == ["engin.range_k = 3: unknown key; did you mean engine.range_km?"]
    assert faults(kwh=3) == ["kwh = 3: unknown key; did you mean engine.battery_kwh?"]
    assert faults(zzz=None) == ["zzz: unknown key"]


def test_two_unknown_keys_do_not_suggest_each_other() -> None:
    assert faults(x={"zzz": 1}, y={"zzz": 2}) == ["x.zzz = 1: unknown key", "y.zzz = 2: unknown key"]


def test_a_key_of_another_kind_is_told_so() -> None:
    assert faults(engine={**ELECTRIC, "tank_l": 3}) == [
        "engine.tank_l = 3: unknown key of this kind; petrol has it"
    ]


def test_a_component_says_itself_what_to_use_instead() -> None:
    engine = {"kind": "petrol", "tank_l": 40, "battery_kwh": 60}
    assert faults(engine=engine) == ["engine.battery_kwh = 60: petrol cars have tank_l"]


def test_what_comes_later_is_called_so() -> None:
    assert faults(wings=2) == ["wings = 2: flying is not modelled in this version"]
    assert faults(max_wings=2) == ["max_wings = 2: flying is not modelled in this version"]


def test_an_unknown_kind_is_told_with_the_known_ones() -> None:
    assert faults(engine={"kind": "elektric"}) == [
        "engine.kind = 'elektric': must be petrol or electric (nearest: electric)"
    ]
    assert faults(engine={"battery_kwh": 60.0}) == ["engine.kind: must be petrol or electric"]


def test_a_value_in_place_of_a_group_is_told_how_to_choose() -> None:
    assert faults(engine="petrol") == [
        "engine = 'petrol': is a group of keys; choose an option of it with engine=NAME"
    ]


def test_a_missing_key_does_not_hide_what_else_is_wrong() -> None:
    built, found = build(
        Car, {"engine": {"kind": "petrol"}, "trailer": {"length_m": -1}, "doors": 0}, KINDS, {}
    )
    assert built is None
    assert [str(problem) for problem in found] == [
        "engine.tank_l: is missing (l)",
        "trailer.length_m = -1: must be above 0 (m)",
        "doors = 0: must be at least 1",
    ]


def test_a_value_that_yaml_leaves_to_be_set_is_missing() -> None:
    assert faults(trailer={"length_m": "???"}) == ["trailer.length_m: is missing (m)"]
