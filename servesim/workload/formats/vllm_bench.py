"""The result of ``vllm bench serve --save-result --save-detailed`` as a trace: what it sent, and when.

Source: vLLM, vllm/benchmarks/serve.py: one JSON object with a list each of ``start_times`` (seconds of a
clock without a date), ``input_lens``, ``output_lens`` and ``errors``, which has text for a request that
failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from servesim.words import listed
from servesim.workload.formats.faults import refuse
from servesim.workload.formats.json_chunk import parsed
from servesim.workload.formats.json_table import JsonTable
from servesim.workload.formats.options import Options
from servesim.workload.formats.recording import Recording
from servesim.workload.formats.source import Source

_TIMES, _INPUTS, _OUTPUTS, _ERRORS = "start_times", "input_lens", "output_lens", "errors"
_ROWS = JsonTable("vllm_bench", time=((_TIMES, 1e9),), input=(_INPUTS,), output=(_OUTPUTS,), needs_time=False)


class VllmBench:
    """The layout of a detailed result."""

    name = "vllm_bench"
    layout = "a JSON object with the lists input_lens, output_lens, perhaps start_times and errors"

    def claims(self, names: Sequence[str]) -> bool:
        """Tell whether an object has the lists of a detailed result."""
        return _ROWS.claims(names)

    def read(self, source: Source, options: Options) -> Recording:
        """Read a file; no option concerns it."""
        value = parsed("".join(source.lines()))
        if not isinstance(value, dict):
            refuse(source.name, "is not one JSON object, the result of one run")
        lists = {name: value[name] for name in (_TIMES, _INPUTS, _OUTPUTS, _ERRORS) if name in value}
        _check(lists, source.name)
        errors = lists.pop(_ERRORS, None) or [""] * len(lists[_INPUTS])
        rows = zip(*lists.values(), strict=True)
        placed = [
            (f"request {number}", dict(zip(lists, row, strict=True))) for number, row in enumerate(rows, 1)
        ]
        sent = [each for each, error in zip(placed, errors, strict=True) if not error]
        failed = len(placed) - len(sent)
        left_out = (("failed requests", failed),) if failed else ()
        return _ROWS.gather(sent, source.name, left_out, tuple(name for name in value if name not in lists))


VLLM_BENCH = VllmBench()


def _check(lists: dict[str, Any], path: str) -> None:
    """Refuse what has no lists, or lists of several lengths."""
    wrong = [name for name in (_INPUTS, _OUTPUTS) if name not in lists]
    wrong += [name for name, value in lists.items() if not isinstance(value, list)]
    if wrong:
        hint = "they are written with --save-detailed"
        refuse(path, f"must have lists of {listed(wrong, 'and')}: {hint}")
    lengths = {name: len(value) for name, value in lists.items() if name != _ERRORS or value}
    if len(set(lengths.values())) > 1:
        told = listed((f"{length:,} {name}" for name, length in lengths.items()), "and")
        refuse(path, f"must have as many of each, not {told}")
