"""Tokens of texts: counted with a tokenizer where the library is there, estimated otherwise."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.check import ConfigError
from servesim.workload.formats import read
from servesim.workload.formats.token_counter import by_length, by_tokenizer
from tests.workload.formats.samples import conversation


@given(st.lists(st.text()), st.floats(0.5, 10))
def test_an_estimate_is_the_length_over_the_letters_of_a_token_rounded_up(
    texts: list[str], letters: float
) -> None:
    for text, tokens in zip(texts, by_length(letters)(texts), strict=True):
        assert (tokens - 1) * letters < len(text) <= tokens * letters + 1e-9


def test_the_letters_of_a_token_can_be_set(tmp_path: Path) -> None:
    (tmp_path / "t").write_text(json.dumps([conversation("a" * 100, "b" * 50)]))
    recording = read(tmp_path / "t", characters_per_token=10.0)
    assert (recording.input_tokens.tolist(), recording.output_tokens.tolist()) == ([10], [5])
    assert "tokens estimated at 10 characters each; workload.tokenizer counts them" in recording.remarks


def test_without_the_library_a_tokenizer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(
        ConfigError, match=r"tokenizer = 'x.json': needs the library tokenizers \(pip install"
    ):
        by_tokenizer("x.json")


def test_a_tokenizer_counts_tokens_with_what_it_puts_around_a_text(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="needs the extra tokenizer")
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0, "<s>": 1}, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    made.enable_truncation(3)
    made.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "t").write_text(json.dumps([conversation("one two three four", "five six seven")]))
    recording = read(tmp_path / "t", tokenizer=str(tmp_path / "tokenizer.json"))
    assert (recording.input_tokens.tolist(), recording.output_tokens.tolist()) == ([5], [4])
    with pytest.raises(ConfigError, match=r"is no tokenizer.json"):
        read(tmp_path / "t", tokenizer=str(tmp_path / "t"))
