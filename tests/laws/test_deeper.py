"""The laws again, on many more services."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws import (
    test_causality,
    test_conservation,
    test_durations,
    test_gaps,
    test_independence,
    test_littles_law,
    test_parts,
    test_work,
)

MODULES = (
    test_causality,
    test_conservation,
    test_durations,
    test_gaps,
    test_independence,
    test_littles_law,
    test_parts,
    test_work,
)
EXAMPLES = 1000


def laws(module: ModuleType) -> Iterator[Any]:
    """Yield each law of a module with each kind that it is about."""
    for name, law in vars(module).items():
        if hasattr(law, "hypothesis"):
            marks = [mark for mark in getattr(law, "pytestmark", []) if mark.name == "parametrize"]
            for kind in marks[0].args[1] if marks else [None]:
                yield pytest.param(law, kind, id=f"{name}-{kind}")


@pytest.mark.slow
@pytest.mark.parametrize(("law", "kind"), [pair for module in MODULES for pair in laws(module)])
def test_a_thousand_cases(law: Callable[..., None], kind: str | None) -> None:
    fixed = {} if kind is None else {"kind": kind}

    @settings(max_examples=EXAMPLES)
    @given(data=st.data())
    def deeper(data: st.DataObject) -> None:
        law.hypothesis.inner_test(**fixed, data=data)

    deeper()
