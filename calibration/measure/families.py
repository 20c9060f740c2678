"""Which module prepares which operation."""

from __future__ import annotations

from collections.abc import Callable

from calibration.measure import copies, decode_attention, elementwise, gemm, launch, moe, prefill_attention
from calibration.measure.bench import Bench, Prepared
from calibration.measure.case import Case

#: Operations of one GPU; :mod:`.collectives` has the others.
PREPARE: dict[str, Callable[[Case, Bench], Prepared]] = {
    "gemm": gemm.prepare,
    "decode_attention": decode_attention.prepare,
    "prefill_attention": prefill_attention.prepare,
    "moe": moe.prepare,
    "norm": elementwise.prepare_norm,
    "rope": elementwise.prepare_rope,
    "activation": elementwise.prepare_activation,
    "quantise": elementwise.prepare_quantise,
    "copy": copies.prepare,
    "launch": launch.prepare,
}
