"""How many tokens a text has: counted with a tokenizer, or taken from its length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from pathlib import Path

from servesim.check import ConfigError, Problem

Count = Callable[[Sequence[str]], list[int]]
"""Returns the tokens of each text."""


def by_length(characters_per_token: float) -> Count:
    """Return a counter that takes so many letters for a token, rounded up."""
    return lambda texts: [ceil(len(text) / characters_per_token) for text in texts]


def by_tokenizer(path: str) -> Count:
    """Return a counter with a tokenizer of Hugging Face, given by its tokenizer.json.

    What it puts around a text, such as a begin of sequence, counts, as in ``vllm bench serve``.

    Raises ConfigError where there is none, or where the library is not installed.
    """
    try:
        from tokenizers import Tokenizer  # optional, and takes its time
    except ImportError:
        message = (
            "needs the library tokenizers (pip install 'servesim[tokenizer]'); "
            "without, characters_per_token estimates tokens"
        )
        raise ConfigError([Problem("tokenizer", path, message)]) from None
    try:
        tokenizer = Tokenizer.from_file(str(Path(path).expanduser()))
    except Exception as error:  # the library raises no narrower class
        message = f"is no tokenizer.json: {' '.join(str(error).split())}"
        raise ConfigError([Problem("tokenizer", path, message)]) from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda texts: [len(encoding.ids) for encoding in tokenizer.encode_batch(list(texts))]
