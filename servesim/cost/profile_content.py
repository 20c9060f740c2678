"""What a calibration profile says: the forms whose coefficients it gives, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any

from servesim.check import Problem, field_problems
from servesim.cost.gpu import Gpu
from servesim.cost.kernels.all_reduce import AllReduce
from servesim.cost.kernels.decode_attention import DecodeAttention
from servesim.cost.kernels.elementwise import Elementwise
from servesim.cost.kernels.gemm import Gemm
from servesim.cost.kernels.moe import Moe
from servesim.cost.kernels.prefill_attention import PrefillAttention
from servesim.field_types import field_types

#: The form of each operation, whose coefficients a profile gives by format or size.
FORMS: dict[str, type] = {
    "gemm": Gemm,
    "decode_attention": DecodeAttention,
    "prefill_attention": PrefillAttention,
    "all_reduce": AllReduce,
    "moe": Moe,
    "quantise": Elementwise,
}

#: What a step cannot do without: everything else can be scaled from BF16, or taken from the datasheet.
NEEDED = ("gemm", "decode_attention", "prefill_attention")

#: Datasheet figures that rates are fractions of: those of the chip, and of its links.
CHIP = ("hbm_bytes_per_s", "bf16_flops_per_s", "fp8_flops_per_s")
LINK = "nvlink_bytes_per_s"


def content_problems(said: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what is wrong inside the fields of a profile that are mappings at all."""
    for operation, form in FORMS.items():
        for name, coefficients in _items(said.get(operation)):
            yield from _form_problems(form, coefficients, f"{operation}.{name}")
    for operation in NEEDED:
        if isinstance(said.get(operation), Mapping) and "bf16" not in said[operation]:
            yield Problem(f"{operation}.bf16", None, "is missing")
    if isinstance(datasheet := said.get("datasheet"), Mapping):
        missing = [figure for figure in (*CHIP, LINK) if figure not in datasheet]
        yield from (Problem(f"datasheet.{figure}", None, "is missing") for figure in missing)
        figures = {figure: datasheet[figure] for figure in (*CHIP, LINK) if figure in datasheet}
        yield from field_problems(Gpu, figures, "datasheet")
    yield from _range_problems(said.get("ranges"))


def _form_problems(form: type, coefficients: Any, path: str) -> Iterator[Problem]:
    """Yield what keeps coefficients from being those of a form."""
    if not isinstance(coefficients, Mapping):
        yield Problem(path, coefficients, "must be coefficients: keys with values")
        return
    known = field_types(form)
    unknown = [name for name in coefficients if name not in known]
    missing = [name for name in required(form) if name not in coefficients]
    yield from (Problem(f"{path}.{name}", coefficients[name], "unknown coefficient") for name in unknown)
    yield from (Problem(f"{path}.{name}", None, "is missing") for name in missing)
    given = {name: value for name, value in coefficients.items() if name in known}
    yield from field_problems(form, given, path)


def _range_problems(ranges: Any) -> Iterator[Problem]:
    """Yield what is not a range, [least, largest], by size, by format, by operation."""
    for operation, formats in _items(ranges):
        if not isinstance(formats, Mapping):
            yield Problem(f"ranges.{operation}", formats, "must be ranges: keys with values")
        for name, sizes in _items(formats):
            if not isinstance(sizes, Mapping):
                yield Problem(f"ranges.{operation}.{name}", sizes, "must be ranges: keys with values")
            for size, ends in _items(sizes):
                if not _is_range(ends):
                    message = "must be [least, largest], two numbers"
                    yield Problem(f"ranges.{operation}.{name}.{size}", ends, message)


def _is_range(ends: Any) -> bool:
    """Tell whether there are two numbers, in order; a comparison with NaN is false."""
    if not (isinstance(ends, Sequence) and len(ends) == 2):
        return False
    numbers = all(isinstance(end, (int, float)) and not isinstance(end, bool) for end in ends)
    return numbers and ends[0] <= ends[1]


def _items(said: Any) -> Iterable[tuple[Any, Any]]:
    """Return the items of a mapping; of anything else none."""
    return said.items() if isinstance(said, Mapping) else ()


def required(component: type) -> list[str]:
    """Return the names of the fields that have no default."""
    return [
        one.name for one in fields(component) if one.default is MISSING and one.default_factory is MISSING
    ]
