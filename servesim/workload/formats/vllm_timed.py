"""Timed traces as vLLM replays them: JSON lines whose keys, unit of time and size of a block can be set.

Source: vLLM, ``vllm bench serve --dataset-name timed_trace`` (pull request 39795); with its defaults these
are the traces of Alibaba's Bailian (https://github.com/alibaba-edu/qwen-bailian-usagetraces-anon): seconds,
and blocks of 16 tokens.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from servesim.workload.formats.json_table import JsonTable
from servesim.workload.formats.options import Options, TimedTrace
from servesim.workload.formats.recording import Recording
from servesim.workload.formats.rows import blocks, rows
from servesim.workload.formats.source import Source

#: Tokens of a block, where nothing else is said.
BLOCK_TOKENS = TimedTrace().chunk_hash_size


class VllmTimed:
    """The layout that the options of a timed trace describe."""

    name = "vllm_timed"
    layout = (
        "JSON lines with the keys timestamp (s), input_length, output_length, perhaps hash_ids, or those "
        "that timed_trace.label_timestamp and so on name"
    )

    def claims(self, names: Sequence[str]) -> bool:
        """Tell whether an object has the keys of this layout, as they are by default."""
        return _table(TimedTrace()).claims(names)

    def read(self, source: Source, options: Options) -> Recording:
        """Read a file; ``options.timed_trace`` says what its keys are called."""
        return _table(options.timed_trace).read(source, options)


VLLM_TIMED = VllmTimed()


def _table(labels: TimedTrace) -> JsonTable:
    return JsonTable(
        VllmTimed.name,
        time=((labels.label_timestamp, round(labels.sec_multiplier * 1e9, 6)),),
        input=(labels.label_input_length,),
        output=(labels.label_output_length,),
        blocks=labels.label_hash_ids,
        block_tokens=labels.chunk_hash_size,
    )


def lines(recording: Recording) -> Iterator[str]:
    """Yield the lines of a file with the usual keys; there must be blocks.

    Times are seconds, always with a decimal point, by which they are told from Mooncake's milliseconds.
    """
    for (time_ns, inputs, outputs), ids in zip(rows(recording), blocks(recording), strict=True):
        record = {"timestamp": time_ns / 1e9, "input_length": inputs, "output_length": outputs}
        yield f"{json.dumps(record | {'hash_ids': ids})}\n"
