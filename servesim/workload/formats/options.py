"""What a reader of traces must be told because no file says it."""

from __future__ import annotations

from dataclasses import dataclass

from servesim.check import quantity
from servesim.workload.formats.cells import MOST_TOKENS


@dataclass(frozen=True)
class TimedTrace:
    """The layout of a timed trace, as ``vllm bench serve --dataset-name timed_trace`` asks for it.

    The names and defaults are those of its flags ``--timed-trace-chunk-hash-size`` and so on (vLLM,
    vllm/benchmarks/datasets, pull request 39795): times are multiplied by ``sec_multiplier`` to get seconds,
    and each hash id stands for ``chunk_hash_size`` tokens.
    """

    chunk_hash_size: int = quantity("tokens of a block", at_least=1, at_most=MOST_TOKENS, default=16)
    sec_multiplier: float = quantity("seconds of a unit of time", at_least=1e-9, at_most=1e6, default=1.0)
    label_timestamp: str = quantity("key of the time", default="timestamp")
    label_input_length: str = quantity("key of the prompt's tokens", default="input_length")
    label_output_length: str = quantity("key of the output's tokens", default="output_length")
    label_hash_ids: str = quantity("key of the blocks", default="hash_ids")


@dataclass(frozen=True)
class Options:
    """What the readers of some formats must be told: the layout of vllm_timed, how sharegpt's tokens count.

    ``tokenizer`` is the tokenizer.json of a Hugging Face tokenizer; without one, so many characters are taken
    for a token.
    """

    timed_trace: TimedTrace = quantity(default=TimedTrace())
    tokenizer: str | None = quantity("the path of a tokenizer.json", default=None)
    characters_per_token: float = quantity("characters", at_least=0.1, at_most=1000, default=4.0)
