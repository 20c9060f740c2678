"""Laws of the step times of speculative decoding, by datasheet and by fitted kernels."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servesim.cost.profile import Profile
from servesim.cost.roofline import Roofline
from servesim.cost.speculation import DraftModel, Heads, Ngram, Speculation
from servesim.cost.speculative import SpeculativeStepTime, speculative_step_time
from servesim.cost.step_time import Decoding, StepTime
from tests.cost.fitted import H100, OVERHEAD, profile
from tests.cost.shipped import model

LLAMA, SMALL = model("llama3.1-70b"), model("llama3.1-8b")
FIDELITIES = [Roofline(), profile()]
DRAFTS = [Ngram, Heads, partial(DraftModel, model=SMALL)]

fidelities = st.sampled_from(FIDELITIES)
drafts = st.sampled_from(DRAFTS)
batches = st.tuples(st.integers(1, 300), st.integers(1, 60_000)).map(
    lambda each: (each[0], each[0] * each[1])
)
chunk_lists = st.lists(st.tuples(st.integers(1, 700), st.integers(0, 5000)), max_size=3)


def times(fidelity: Roofline | Profile, a_model: Any = LLAMA, **more: Any) -> StepTime:
    """Return plain step times on four GPUs."""
    return fidelity.step_time(a_model, H100, 4, "auto", max_num_seqs=256, max_num_batched_tokens=2048, **more)


def drafting(fidelity: Roofline | Profile, speculation: Speculation) -> SpeculativeStepTime:
    """Return step times of speculative decoding."""
    return speculative_step_time(partial(times, fidelity), speculation, LLAMA, OVERHEAD)


@settings(max_examples=40)
@given(fidelity=fidelities, draft=drafts, batch=batches, chunks=chunk_lists, drafted=st.integers(1, 7))
def test_time_does_not_decrease_in_the_length_of_the_draft(
    fidelity: Any, draft: Any, batch: tuple[int, int], chunks: list[tuple[int, int]], drafted: int
) -> None:
    """A step that verifies is no shorter than a plain one, nor one that verifies more than one with less."""
    plain = times(fidelity, overhead=OVERHEAD).mixed(*batch, chunks)
    shorter, longer = (
        drafting(fidelity, draft(num_speculative_tokens=k, acceptance=0.5)).mixed(*batch, chunks)
        for k in (drafted, drafted + 1)
    )
    assert plain * (1 - 1e-12) <= shorter <= longer * (1 + 1e-12)


@settings(max_examples=40)
@given(
    fidelity=fidelities,
    draft=drafts,
    batch=batches,
    chunks=chunk_lists,
    longer=st.integers(0, 50_000),
    more=st.integers(1, 600),
)
def test_time_does_not_decrease_in_context_or_tokens(
    fidelity: Any,
    draft: Any,
    batch: tuple[int, int],
    chunks: list[tuple[int, int]],
    longer: int,
    more: int,
) -> None:
    found = drafting(fidelity, draft(num_speculative_tokens=3, acceptance=0.5))
    (sequences, context), mean = batch, batch[1] // batch[0]
    seconds = found.mixed(sequences, context, chunks) * (1 - 1e-12)
    assert found.mixed(sequences, context + longer, chunks) >= seconds
    assert found.mixed(sequences, context, [*chunks, (more, longer)]) >= seconds
    assert found.mixed(sequences + more, context + more * mean, chunks) >= seconds


@settings(max_examples=30)
@given(fidelity=fidelities, draft=drafts, batch=batches, chunks=chunk_lists)
def test_its_parts_agree(fidelity: Any, draft: Any, batch: tuple[int, int], chunks: Any) -> None:
    """A step without chunks is decode's line; operations add up; the line holds up to its limit."""
    found = drafting(fidelity, draft(num_speculative_tokens=3, acceptance=0.5))
    base_s, slope_s, limit = found.decode(*batch)
    sequences, context = batch
    assert found.mixed(*batch, []) == pytest.approx(base_s + slope_s * context)
    further = min(limit, context + 1000.0)
    assert found.mixed(sequences, further, []) == pytest.approx(base_s + slope_s * further)
    operations = found.breakdown(*batch, chunks)
    assert sum(each.seconds for each in operations) == pytest.approx(found.mixed(*batch, chunks))
    drafted = [each for each in operations if each.name.startswith("draft_")]
    assert bool(drafted) == (draft is not Ngram)


@pytest.mark.parametrize("fidelity", FIDELITIES)
def test_verification_is_free_in_a_small_batch_and_dear_in_a_large_one(fidelity: Any) -> None:
    """The weights are read once, whatever is verified; arithmetic is paid for by the token."""
    plain = times(fidelity, overhead=OVERHEAD)
    found = drafting(fidelity, Ngram(num_speculative_tokens=4, acceptance=0.5))

    def dearer(sequences: int) -> float:
        context = sequences * 500
        return found.mixed(sequences, context, []) / plain.mixed(sequences, context, [])

    assert dearer(1) < 1.05
    assert dearer(256) > 2
    assert sorted(map(dearer, (1, 8, 32, 64, 128, 256))) == [*map(dearer, (1, 8, 32, 64, 128, 256))]


@pytest.mark.parametrize("fidelity", FIDELITIES)
def test_verifying_is_prefill_of_as_many_tokens_behind_the_kv(fidelity: Any) -> None:
    """In one sequence: the dense part is to the second that of a chunk of as many tokens."""
    each = Decoding(5, 5)
    verified = {one.name: one for one in times(fidelity, each=each).breakdown(1, 1000, [])}
    chunk = {one.name: one for one in times(fidelity).breakdown(0, 0, [(5, 999)])}
    for name in ("qkv", "o", "gate_up", "down", "all_reduce"):
        assert verified[name] == chunk[name]


def test_the_host_samples_from_every_verified_token() -> None:
    """Three sequences of five tokens, and the prompt beside them, are 16 rows of logits to it."""
    step = times(profile(), overhead=OVERHEAD, each=Decoding(5, 5))
    host = {one.name: one.seconds for one in step.breakdown(3, 3000, [(8, 0)]) if one.bound == "host"}
    assert host["host_sequences"] == pytest.approx(16 * OVERHEAD.sequence_s)
    alone_s = times(profile(), each=Decoding(5, 5)).mixed(3, 3000, [])
    assert step.mixed(3, 3000, []) - alone_s == pytest.approx(OVERHEAD.step_s + 15 * OVERHEAD.sequence_s)


def test_the_draft_runs_token_by_token() -> None:
    """By datasheet, at batch 1: each pass of the draft reads its weights and its KV once more."""
    drafted = [DraftModel(num_speculative_tokens=k, acceptance=0.5, model=SMALL) for k in (2, 3, 4)]
    steps = [drafting(Roofline(), each).mixed(1, 2000, []) for each in drafted]
    plain = times(Roofline(), SMALL).mixed(1, 2000, [])
    for one, more in pairwise(steps):
        assert more - one == pytest.approx(plain, rel=0.05)


def test_heads_are_one_layer() -> None:
    draft = Heads(num_speculative_tokens=1, acceptance=0.5).draft(LLAMA)
    assert (draft.num_hidden_layers, draft.hidden_size, draft.vocab_size) == (1, 8192, 128256)
    own = Heads(num_speculative_tokens=1, acceptance=0.5, draft_vocab_size=32000)
    shared = Heads(num_speculative_tokens=1, acceptance=0.5)
    head = 32000 * 8192 * 2
    assert own.weight_bytes(LLAMA, 1) - shared.weight_bytes(LLAMA, 1) == head
    layer = LLAMA.linear_bytes() / LLAMA.num_hidden_layers
    assert shared.weight_bytes(LLAMA, 1) == layer + 2 * 8192**2 * 2


@pytest.mark.parametrize("draft", DRAFTS)
def test_work_is_that_of_the_operations(draft: Any) -> None:
    """FLOPs and bytes of a decode-only step, from the sums of a run's log and from its operations."""
    found = drafting(Roofline(), draft(num_speculative_tokens=3, acceptance=0.5))
    sequences, context, queries = 16, 16_000, 4
    read = context + (queries - 1) * sequences
    flops, hbm_bytes = found.work(
        **{  # type: ignore[arg-type]
            name: [float(value)]
            for name, value in {
                "steps": 1,
                "tokens": sequences,
                "rows": sequences,
                "pairs": queries * read,
                "context": read,
                "decodes": sequences,
            }.items()
        }
    )
    operations = [each for each in found.breakdown(sequences, context, []) if "all_reduce" not in each.name]
    assert flops[0] == pytest.approx(sum(each.flops for each in operations), rel=1e-2)
    assert hbm_bytes[0] == pytest.approx(sum(each.bytes for each in operations), rel=1e-2)


@pytest.mark.parametrize(
    ("given_", "path"),
    [
        ({"acceptance": None}, "acceptance"),
        ({"acceptance": (0.5, 0.4)}, "acceptance"),
        ({"acceptance": (0.5, 1.4, 0.3)}, "acceptance[1]"),
        ({"mean_accepted_length": 4.5}, "mean_accepted_length"),
        ({"mean_accepted_length": 2.0, "acceptance": (0.5, 8, 0.3)}, "acceptance[1]"),
    ],
)
def test_what_cannot_be_accepted(given_: dict[str, Any], path: str) -> None:
    found = Ngram(**{"num_speculative_tokens": 3, "acceptance": 0.5, **given_})
    assert [problem.path for problem in found.problems()] == [path]


def test_a_mean_takes_the_place_of_rates() -> None:
    found = Ngram(num_speculative_tokens=3, acceptance=0.9, mean_accepted_length=2.2)
    assert found.mean_tokens == pytest.approx(2.2)
    assert len(set(found.rates)) == 1
