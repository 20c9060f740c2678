"""What a trace is told to be like is what it is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.workload.description import MOST_BINS, Description
from servesim.workload.formats import Recording, read
from servesim.workload.formats.recording import Dialogue
from tests.shared import shared_data
from tests.workload.formats.recordings import blocks_of, listed, recordings
from tests.workload.theory import SIGMAS


def timed(times_s: list[float]) -> Description:
    ones = np.ones(len(times_s), dtype=np.int64)
    return Description(Recording(np.array([round(time * 1e9) for time in times_s]), ones, ones, "made"))


@given(recordings())
def test_every_request_and_token_is_in_one_bin(recording: Recording) -> None:
    description = Description(recording)
    assert description.per_bin().sum() == recording.size
    assert description.per_bin(description.recording.input_tokens).sum() == description.inputs.total
    assert len(description.per_bin()) <= MOST_BINS + 1
    assert len(description.per_bin()) == len(description.edges_s) - 1


@given(recordings(step_ns=1))
def test_the_rates_of_the_bins_have_the_mean_that_is_told(recording: Recording) -> None:
    """So the peak is never below it; no bin is shorter than the width, the last one less than twice it."""
    description = Description(recording)
    widths = np.diff(description.edges_s)
    assert widths.min() >= description.bin_s * (1 - 1e-9)
    assert widths.max() <= 2 * description.bin_s * (1 + 1e-9)
    if description.rate_rps is not None:
        mean = np.average(description.rates_rps, weights=widths)
        assert mean == pytest.approx(description.rate_rps, rel=1e-9)
        assert description.peak_rps >= description.rate_rps * (1 - 1e-9)


@given(st.lists(st.integers(0, 20_000), min_size=2, max_size=60))
def test_the_peak_of_a_short_trace_is_at_least_its_mean(times_ms: list[int]) -> None:
    description = timed([time / 1000 for time in times_ms])
    if description.rate_rps is not None:
        assert description.peak_rps >= description.rate_rps * (1 - 1e-9)


def test_a_short_trace_has_several_bins() -> None:
    """29 requests in 12.6 s: bins of 2 s, the last one of 2.6 s."""
    description = timed(np.linspace(0, 12.6, 29).tolist())
    assert description.edges_s.tolist() == pytest.approx([0, 2, 4, 6, 8, 10, 12.6])
    assert description.per_bin().sum() == 29


def test_a_metronome_has_no_variation() -> None:
    description = timed([0.0, 0.5, 1.0, 1.5, 2.0])
    assert (description.rate_rps, description.gap_scv, description.span_s) == (2.0, 0.0, 2.0)
    assert timed([0.5 * number for number in range(100)]).rates_rps.tolist() == [2.0] * 24


def test_poisson_arrivals_have_a_squared_coefficient_of_variation_of_1() -> None:
    count = 100_000
    gaps = np.random.default_rng(1).standard_exponential(count)
    scv = timed(np.cumsum(gaps).tolist()).gap_scv
    error = (4 / count) ** 0.5  # by the delta method, of gaps with central moments 1, 2 and 9
    assert scv == pytest.approx(1.0, abs=SIGMAS * error)


def test_one_moment_has_no_rate() -> None:
    description = timed([3.0, 3.0])
    assert (description.rate_rps, description.gap_scv, description.same_time) == (None, None, 1)


def test_one_gap_has_no_variation_to_be_told() -> None:
    assert timed([0.0, 3.0]).gap_scv is None
    assert timed([0.0, 3.0, 6.0]).gap_scv == 0.0


def test_the_peak_is_that_of_the_fullest_bin() -> None:
    """Two in each of 60 seconds, and three more in one."""
    description = timed([*np.arange(0, 60, 0.5), 30.2, 30.3, 30.4])
    assert description.bin_s == 2.0
    assert description.peak_rps == (4 + 3) / 2.0


def test_a_week_has_bins_that_a_clock_shows() -> None:
    times_s = np.linspace(0, 1, 2000)
    assert timed((times_s * 7 * 86_400).tolist()).bin_s == 7200.0
    assert timed((times_s * 3 * 365 * 86_400).tolist()).bin_s == 10 * 86_400.0


@given(recordings())
def test_blocks_are_found_after_those_before_them(recording: Recording) -> None:
    """Against a set of all blocks that were seen, request by request."""
    description = Description(recording)
    assert description.reuse is not None
    assert description.recording.blocks is not None
    seen: set[int] = set()
    for ids, found in zip(listed(description.recording.blocks), description.reuse.found, strict=True):
        leading = 0
        for one in ids:
            if one not in seen:
                break
            leading += 1
        assert found == leading or len(set(ids)) < len(ids)
        seen.update(ids)


def test_what_prompts_share_in_tokens_ends_with_the_prompt() -> None:
    ones = np.ones(2, dtype=np.int64)
    blocks = blocks_of([[1, 2], [1, 2]], 512)
    reuse = Description(Recording(ones, np.array([600, 600]), ones, "made", blocks=blocks)).reuse
    assert reuse is not None
    assert (reuse.found.tolist(), reuse.tokens.tolist(), reuse.share) == ([0, 2], [0, 600], 0.5)


@pytest.mark.parametrize("dated", [False, True])
def test_sessions_are_told_by_what_is_known_of_their_times(dated: bool) -> None:
    """Two sessions of two turns, the second of which comes 2 s after an answer of 10 tokens."""
    session, tokens = np.array([0, 0, 1, 1]), np.array([100, 50, 100, 50])
    times_ns = np.array([0, 2, 1, 3]) * 10**9
    dialogue = Dialogue(session, np.array([0, 2, 0, 2]) * 10**9, np.array([True, dated, True, dated]))
    made = Recording(times_ns, tokens, np.full(4, 10), "made", dialogue=dialogue)
    told = Description(made)
    assert told.talks is not None
    assert (told.talks.sessions, told.talks.turns.tolist(), told.talks.pauses_s.tolist()) == (
        2,
        [2, 2],
        [2, 2],
    )
    assert told.of_sessions == (not dated)
    assert (len(told.times_ns), told.span_s) == ((4, 3.0) if dated else (2, 1.0))
    assert told.out_of_order == 0
    assert told.talks.new_inputs is not None
    assert (told.talks.new_inputs.total, told.inputs.tokens.tolist()) == (300, [100, 160, 100, 160])
    blocks = blocks_of([[1], [1], [2], [2]], 512)
    whole = Description(made._replace(blocks=blocks))
    assert whole.talks is not None
    assert whole.talks.new_inputs is None
    assert whole.inputs.total == 300


def test_azures_traces_are_as_bursty_as_they_are_known_to_be() -> None:
    known = {"code": 173, "conv": 1.2}
    for name, scv in known.items():
        description = Description(read(shared_data("traces", f"AzureLLMInferenceTrace_{name}.csv")))
        assert description.gap_scv == pytest.approx(scv, rel=0.05)


def test_mooncakes_prompts_share_what_a_count_of_unique_blocks_says() -> None:
    description = Description(read(shared_data("traces", "mooncake_synthetic.jsonl.gz")))
    assert description.reuse is not None
    assert description.reuse.share == pytest.approx(1 - 43_924 / 121_877)
