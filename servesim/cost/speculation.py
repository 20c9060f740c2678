"""Speculative decoding: what drafts the tokens, how many at a time, and how many of them are accepted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil

from servesim.check import Problem, quantity
from servesim.cost.acceptance import mean_tokens, rate_of
from servesim.cost.model import BF16_BYTES, MOST_WIDTH, Model
from servesim.words import listed

#: Drafts that engines run with are of 1 to 10 tokens.
MOST_DRAFTED = 64

_ONE_OF_TWO = "give acceptance, or mean_accepted_length in its place"


@dataclass(frozen=True, kw_only=True)
class Speculation(ABC):
    """A draft of ``num_speculative_tokens`` tokens per sequence and step, which the model verifies at once.

    A step emits the tokens up to the first one rejected, and one of the model's own (Leviathan et al., ICML
    2023; Chen et al., arXiv:2302.01318). ``acceptance`` is the rate of each position given that all before
    it are accepted, or one rate for all; ``mean_accepted_length``, where it is given, takes its place: the
    tokens that a step emits on average, its own included, from which the one rate follows.
    """

    num_speculative_tokens: int = quantity("tokens per step", at_least=1, at_most=MOST_DRAFTED)
    acceptance: float | tuple[float, ...] | None = quantity(
        "of drafted tokens", at_least=0, at_most=1, default=None
    )
    mean_accepted_length: float | None = quantity("tokens per step", at_least=1, default=None)

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong between length and acceptance."""
        drafted, mean, rates = self.num_speculative_tokens, self.mean_accepted_length, self.acceptance
        if mean is not None and mean > drafted + 1:
            message = f"must be at most {drafted + 1}: the drafted tokens and one more (tokens per step)"
            yield Problem("mean_accepted_length", mean, message)
        elif mean is None and rates is None:
            yield Problem("acceptance", None, _ONE_OF_TWO)
        if isinstance(rates, tuple):
            if len(rates) != drafted:
                message = f"must be one rate, or one for each of the {drafted} drafted tokens"
                yield Problem("acceptance", list(rates), message)
            for place, rate in enumerate(rates):
                if not 0 <= rate <= 1:
                    yield Problem(f"acceptance[{place}]", rate, "must be at least 0 and at most 1")

    @cached_property
    def rates(self) -> tuple[float, ...]:
        """The acceptance rate of each position."""
        if self.mean_accepted_length is not None:
            rate = rate_of(self.mean_accepted_length, self.num_speculative_tokens)
            return (rate,) * self.num_speculative_tokens
        if isinstance(self.acceptance, tuple):
            return self.acceptance
        return (float(self.acceptance or 0.0),) * self.num_speculative_tokens

    @property
    def mean_tokens(self) -> float:
        """The mean tokens that a step emits for each sequence."""
        return mean_tokens(self.rates)

    @property
    def queries(self) -> int:
        """Tokens of a sequence that a step verifies: its newest one and the drafted."""
        return 1 + self.num_speculative_tokens

    @property
    def slots(self) -> int:
        """Tokens beyond those computed for which a step of a sequence has KV blocks.

        Those that it verifies, and where the draft has KV of its own as many more as are drafted behind them
        (vLLM, vllm/v1/core/sched/scheduler.py, ``num_lookahead_tokens``).
        """
        return self.queries

    @abstractmethod
    def draft(self, target: Model) -> Model | None:
        """Return the model that drafts, as its step times and KV have it; None: no model does."""

    def weight_bytes(self, target: Model, tensor_parallel_size: int) -> int:
        """Return the bytes of the draft's weights on one GPU."""
        return 0

    def misfits(self, target: Model) -> Iterator[Problem]:
        """Yield what keeps it from drafting for a model."""
        return iter(())

    def tensor_parallel_problems(self, target: Model, size: int) -> Iterator[Problem]:
        """Yield what keeps the draft from being split over ``size`` GPUs, other than the model beside it."""
        return iter(())


@dataclass(frozen=True, kw_only=True)
class Ngram(Speculation):
    """Drafts copied from the sequence itself, behind an earlier occurrence of its last tokens.

    (Saxena, "Prompt Lookup Decoding", 2023; vLLM's ``ngram``.) The look-up runs on the host and is taken to
    cost nothing. A step drafts whether or not there is an occurrence: what is not found is not accepted.
    """

    def draft(self, target: Model) -> None:
        """Return None: no model drafts."""
        return


@dataclass(frozen=True, kw_only=True)
class DraftModel(Speculation):
    """Drafts of a smaller model with the target's vocabulary, its weights and KV beside the target's.

    It is split over the same GPUs, and drafts token by token.
    """

    model: Model

    @property
    def slots(self) -> int:
        """Tokens beyond those computed for which a step of a sequence has KV blocks."""
        return self.queries + self.num_speculative_tokens

    def draft(self, target: Model) -> Model:
        """Return the draft model."""
        return self.model

    def weight_bytes(self, target: Model, tensor_parallel_size: int) -> int:
        """Return the bytes of all its weights on one GPU."""
        return self.model.weight_bytes(tensor_parallel_size)

    def misfits(self, target: Model) -> Iterator[Problem]:
        """Yield a problem where the two do not speak of the same tokens."""
        if self.model.vocab_size != target.vocab_size:
            message = f"must have the vocabulary of {target.name}, {target.vocab_size} (tokens)"
            yield Problem("model.vocab_size", self.model.vocab_size, message)

    def tensor_parallel_problems(self, target: Model, size: int) -> Iterator[Problem]:
        """Yield what keeps the draft model from being split over ``size`` GPUs."""
        return self.model.tensor_parallel_problems(size)


@dataclass(frozen=True, kw_only=True)
class Heads(Speculation):
    """Drafts of one more decoder layer of the target, behind its hidden states, and of an LM head.

    EAGLE (Li et al., ICML 2024) and its successors, and the multi-token prediction modules of DeepSeek-V3
    (arXiv:2412.19437), applied once per drafted token. The embedding is the target's, and so is the LM head
    unless ``draft_vocab_size`` gives the layer a smaller one of its own, as EAGLE-3 has (arXiv:2503.01840).
    What joins hidden states and embedding in front of the layer counts in memory, and not in time.
    """

    draft_vocab_size: int | None = quantity("tokens", at_least=1, at_most=MOST_WIDTH, default=None)

    @property
    def slots(self) -> int:
        """Tokens beyond those computed for which a step of a sequence has KV blocks."""
        return self.queries + self.num_speculative_tokens

    def draft(self, target: Model) -> Model:
        """Return a model of one layer of the target's shape and an LM head."""
        vocab_size = self.draft_vocab_size or target.vocab_size
        return replace(
            target, name=f"{target.name} heads", num_hidden_layers=1, vocab_size=vocab_size, hf_config=None
        )

    def weight_bytes(self, target: Model, tensor_parallel_size: int) -> int:
        """Return the bytes of the layer, of what joins its two inputs, and of an LM head of its own."""
        layer = self.draft(target).linear_bytes(tensor_parallel_size)
        joining = 2 * target.hidden_size**2 * BF16_BYTES
        head = (self.draft_vocab_size or 0) * target.hidden_size * BF16_BYTES
        return ceil(layer + (joining + head) / tensor_parallel_size)

    def tensor_parallel_problems(self, target: Model, size: int) -> Iterator[Problem]:
        """Yield what keeps an LM head of its own from being split over ``size`` GPUs."""
        draft, shared = self.draft(target), target.indivisible(size)
        if own := [part for part in draft.indivisible(size) if part not in shared]:
            yield Problem("tensor_parallel_size", size, f"must divide {listed(own, 'and')} of {draft.name}")


@dataclass(frozen=True, kw_only=True)
class Eagle(Heads):
    """Heads of EAGLE, with the target's LM head unless they are given one."""


@dataclass(frozen=True, kw_only=True)
class Eagle3(Heads):
    """Heads of EAGLE-3, whose checkpoints have an LM head of their own."""


@dataclass(frozen=True, kw_only=True)
class Mtp(Heads):
    """A multi-token prediction module, trained with the target."""
