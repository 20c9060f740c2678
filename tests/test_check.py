"""Checked fields: every problem of a tree is found, and said so that a reader can mend it."""

import math
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.check import ConfigError, Problem, check, field_problems, problems, quantity
from servesim.words import listed


@dataclass(frozen=True)
class Wheel:
    radius_m: float = quantity("m", above=0, at_most=2)
    spokes: int | None = quantity("spokes", at_least=1, default=None)


@dataclass(frozen=True)
class Bicycle:
    front: Wheel
    rear: Wheel
    gears: int | Literal["auto"] = quantity("gears", at_least=1, below=100, default="auto")
    brake: Literal["rim", "disc", "none"] = quantity(default="disc")
    light: bool = quantity(default=False)
    name: str = quantity(default="bike")
    ratios: tuple[float, ...] = quantity(default=())
    sizes: tuple[tuple[float, str], ...] = quantity(default=())
    unchecked: Any = None

    def problems(self) -> Iterator[Problem]:
        if self.front.radius_m < self.rear.radius_m:
            yield Problem("front.radius_m", self.front.radius_m, "must not be below the rear's")


def bicycle(**changes: Any) -> Bicycle:
    return Bicycle(**{"front": Wheel(0.35), "rear": Wheel(0.35), **changes})


def messages(component: object) -> list[str]:
    return [str(problem) for problem in problems(component)]


def test_a_right_tree_has_no_problems() -> None:
    check(bicycle(gears=3, ratios=(1, 2.5), sizes=((1.0, "S"),), unchecked=math.nan))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"front": Wheel(0)}, "front.radius_m = 0: must be above 0 and at most 2 (m)"),
        ({"front": Wheel(2.1)}, "front.radius_m = 2.1: must be above 0 and at most 2 (m)"),
        ({"front": Wheel(math.nan)}, "front.radius_m = nan: must be a finite number (m)"),
        ({"front": Wheel(math.inf)}, "front.radius_m = inf: must be a finite number (m)"),
        ({"front": Wheel(True)}, "front.radius_m = True: must be a finite number (m)"),
        ({"front": Wheel(0.4, 0)}, "front.spokes = 0: must be at least 1 (spokes)"),
        ({"front": Wheel(0.4, 1.5)}, "front.spokes = 1.5: must be a whole number or null (spokes)"),
        ({"gears": 100}, "gears = 100: must be at least 1 and below 100 (gears)"),
        ({"gears": "many"}, "gears = 'many': must be a whole number or auto (gears)"),
        ({"brake": "foot"}, "brake = 'foot': must be rim, disc or none"),
        ({"light": 1}, "light = 1: must be true or false"),
        ({"name": 7}, "name = 7: must be text"),
        ({"name": None}, "name: must be text"),
        ({"ratios": (1, "x")}, "ratios = (1, 'x'): must be a list, each of it a finite number"),
        ({"ratios": 3}, "ratios = 3: must be a list, each of it a finite number"),
        ({"sizes": ((1.0,),)}, "sizes = ((1.0,),): must be a list, each of it [a finite number, text]"),
        ({"rear": Wheel(0.5)}, "front.radius_m = 0.35: must not be below the rear's"),
    ],
)
def test_each_problem_has_its_path_value_bound_and_unit(changes: dict[str, Any], message: str) -> None:
    assert messages(bicycle(**changes)) == [message]


def test_all_problems_come_in_one_error() -> None:
    with pytest.raises(ConfigError) as caught:
        check(bicycle(front=Wheel(-1, 0), brake="foot", light="on"), "garage.bike")
    assert [problem.path for problem in caught.value.problems] == [
        "garage.bike.front.radius_m",
        "garage.bike.front.spokes",
        "garage.bike.brake",
        "garage.bike.light",
    ]
    text = str(caught.value)
    assert text.startswith("4 problems in the input:\n")
    assert all(f"\n  {problem}" in text for problem in caught.value.problems)


def test_a_component_is_asked_about_several_fields_only_when_each_is_right() -> None:
    assert messages(bicycle(rear=Wheel("big"))) == ["rear.radius_m = 'big': must be a finite number (m)"]


def test_what_concerns_some_fields_is_asked_although_others_are_wrong() -> None:
    @dataclass(frozen=True)
    class Shelf:
        width_m: float = quantity("m", above=0)
        depth_m: float = quantity("m", above=0)
        colour: str = quantity(default="white")
        concerns: ClassVar[tuple[str, ...]] = ("width_m", "depth_m")
        concerns_of: ClassVar[Mapping[str, tuple[str, ...]]] = {"looks": ("colour",)}

        def problems(self) -> Iterator[Problem]:
            if self.width_m < self.depth_m:
                yield Problem("width_m", self.width_m, "must not be below depth_m")

        def looks(self) -> Iterator[Problem]:
            if self.colour == "grey":
                yield Problem("colour", self.colour, "is dull")

    assert messages(Shelf(1, 2, colour=3)) == [
        "colour = 3: must be text",
        "width_m = 1: must not be below depth_m",
    ]
    assert messages(Shelf(-1, 2)) == ["width_m = -1: must be above 0 (m)"]
    assert messages(Shelf(-1, 2, "grey")) == ["width_m = -1: must be above 0 (m)", "colour = 'grey': is dull"]


def test_values_can_be_checked_before_there_is_a_component() -> None:
    found = field_problems(Bicycle, {"gears": 0, "front": Wheel(3)}, "bike")
    assert [problem.path for problem in found] == ["bike.front.radius_m", "bike.gears"]


def test_fields_that_are_no_quantities_are_left_alone() -> None:
    @dataclass(frozen=True)
    class Box:
        content: Any = field(default=math.nan)

    assert messages(Box()) == []


@given(st.floats() | st.integers() | st.booleans() | st.none() | st.text(max_size=3))
def test_a_bounded_number_is_accepted_exactly_within_its_bounds(value: Any) -> None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    assert (not messages(Wheel(value))) == (number and 0 < value <= 2)


def test_numbers_that_no_float_can_hold_are_refused() -> None:
    assert messages(Wheel(10**400))[0].endswith("...: must be a finite number (m)")


def test_long_values_are_shortened() -> None:
    assert len(messages(bicycle(name=["x" * 1000]))[0]) < 120


def test_an_error_survives_the_way_between_processes() -> None:
    error = ConfigError([Problem("a.b", 3, "must be less")])
    assert pickle.loads(pickle.dumps(error)).problems == error.problems


def test_one_problem_is_called_one() -> None:
    assert str(ConfigError([Problem("a", 1, "is wrong")])) == "1 problem in the input:\n  a = 1: is wrong"


@pytest.mark.parametrize("given", ["scheduler=static", None, {"front": Wheel(1)}, Wheel])
def test_what_is_no_component_is_refused(given: object) -> None:
    with pytest.raises(TypeError, match=r"needs a scenario .* servesim.load\(\.\.\.\)"):
        check(given)


def test_names_are_listed_as_a_reader_says_them() -> None:
    assert [listed("a"), listed("ab"), listed("abc", "and"), listed("")] == [
        "a",
        "a or b",
        "a, b and c",
        "nothing",
    ]
