"""One shape to be timed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calibration.sources.tidy import SHAPES

#: What a plan says of a shape: all of its tidy columns but the kernel, which the machine decides.
PLANNED = {
    operation: tuple(name for name in names if name != "kernel") for operation, names in SHAPES.items()
}


class UnsupportedError(RuntimeError):
    """This machine or its libraries cannot run a case; the message says why."""


@dataclass(frozen=True)
class Case:
    """An operation and its shape, ``values`` in the order of PLANNED."""

    operation: str
    values: tuple[Any, ...]

    @classmethod
    def of(cls, operation: str, **shape: Any) -> Case:
        """Return a case by the names of its columns."""
        return cls(operation, tuple(shape[name] for name in PLANNED[operation]))

    @property
    def shape(self) -> dict[str, Any]:
        """The columns of the shape and their values."""
        return dict(zip(PLANNED[self.operation], self.values, strict=True))

    def __getitem__(self, name: str) -> Any:
        return self.values[PLANNED[self.operation].index(name)]

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.shape.items())
