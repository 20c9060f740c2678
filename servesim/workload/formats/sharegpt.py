"""ShareGPT's conversations: a JSON list of texts, whose first two turns are a prompt and its answer.

Source: vLLM, vllm/benchmarks/datasets (``--dataset-name sharegpt``), with its filter: prompt and answer
have 4 tokens or more, the prompt at most 1,024, both together at most 2,048. There are no times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from servesim.check import Problem
from servesim.workload.batch import BATCH_ROWS, IntArray
from servesim.workload.formats.chunk import Numbers, recording
from servesim.workload.formats.faults import Faults
from servesim.workload.formats.json_array import read_items
from servesim.workload.formats.options import Options
from servesim.workload.formats.recording import Recording
from servesim.workload.formats.source import Source
from servesim.workload.formats.token_counter import by_length, by_tokenizer

LEAST_TOKENS, MOST_PROMPT_TOKENS, MOST_TOKENS = 4, 1024, 2048

_SHORT = "conversations of fewer than two turns"
_FILTERED = (
    f"conversations outside vLLM's filter (at least {LEAST_TOKENS} tokens each, at most "
    f"{MOST_PROMPT_TOKENS:,} in and {MOST_TOKENS:,} in all)"
)


class ShareGpt:
    """The layout of conversations."""

    name = "sharegpt"
    layout = "a JSON list of objects with conversations, whose turns have from and value"

    def claims(self, names: Sequence[str]) -> bool:
        """Tell whether an object of the list has conversations."""
        return "conversations" in names

    def read(self, source: Source, options: Options) -> Recording:
        """Read the first two turns of every conversation; the options say how tokens are counted."""
        count = (
            by_tokenizer(options.tokenizer) if options.tokenizer else by_length(options.characters_per_token)
        )
        left: Counter[str] = Counter()
        faults = Faults(source.name)
        pairs = _pairs(source, left, faults)
        parts = []
        while some := list(islice(pairs, BATCH_ROWS)):
            lengths = np.array([count(texts) for texts in zip(*some, strict=True)], dtype=np.int64)
            kept = lengths[:, _is_kept(*lengths)]
            left[_FILTERED] += lengths.shape[1] - kept.shape[1]
            parts.append(kept)
        faults.check()
        inputs, outputs = np.concatenate(parts, axis=1) if parts else np.empty((2, 0), dtype=np.int64)
        numbers: Numbers = {"input_tokens": inputs, "output_tokens": outputs} if len(inputs) else {}
        left_out = tuple((why, left[why]) for why in (_SHORT, _FILTERED) if left[why])
        found = recording(numbers, self.name, source.name, (), left_out=left_out)
        return found._replace(remarks=(_counted(options),))


SHAREGPT = ShareGpt()


def _is_kept(inputs: IntArray, outputs: IntArray) -> Any:
    short = (inputs < LEAST_TOKENS) | (outputs < LEAST_TOKENS)
    return ~short & (inputs <= MOST_PROMPT_TOKENS) & (inputs + outputs <= MOST_TOKENS)


def _counted(options: Options) -> str:
    if options.tokenizer:
        return f"tokens counted with {options.tokenizer}"
    return (
        f"tokens estimated at {options.characters_per_token:g} characters each; "
        "workload.tokenizer counts them"
    )


def _pairs(source: Source, left: Counter[str], faults: Faults) -> Iterator[tuple[str, str]]:
    """Yield prompts and answers."""
    listed = read_items(source.pieces(), source.name, "a JSON list of conversations")
    for number, conversation in enumerate(listed, start=1):
        turns = conversation.get("conversations") if isinstance(conversation, dict) else None
        texts = _texts(turns) if isinstance(turns, list) else None
        if texts is None:
            place = f"path, conversation {number}"
            faults.add([Problem(place, None, "must have conversations, a list of turns with a value")])
        elif len(texts) < 2:
            left[_SHORT] += 1
        else:
            yield texts[0], texts[1]


def _texts(turns: Sequence[Any]) -> list[str] | None:
    """Return the texts of the first two turns, of as many as there are; None where they have none."""
    texts = [turn.get("value") if isinstance(turn, dict) else None for turn in turns[:2]]
    known = [text for text in texts if isinstance(text, str)]
    return known if len(known) == len(texts) else None
