"""Fitting terms: what was put in comes out, and what runs cannot tell is said."""

import numpy as np
import pytest

from servesim.validate.fit import TERMS, fit

TRUE = {"step_s": 1e-3, "sequence_s": 2e-5, "prefill_factor": 1.2}
NOTHING = {name: term.least for name, term in TERMS.items()}
SEQUENCES = np.array([1.0, 8, 16, 32, 64, 128, 256, 512])
PREFILL_S = np.array([0.0, 2e-3, 1e-3, 4e-3, 0, 8e-3, 2e-3, 9e-3])


def predicted(terms, sequences=SEQUENCES, prefill_s=PREFILL_S):
    """Return the time of a step whose decode kernels take 10 ms."""
    host_s = terms["step_s"] + terms["sequence_s"] * sequences
    return 10e-3 + host_s + terms["prefill_factor"] * prefill_s


@pytest.mark.parametrize("start", [NOTHING, TRUE, {"step_s": 5e-3, "sequence_s": 0.0, "prefill_factor": 3.0}])
def test_what_was_put_in_comes_out_from_wherever_the_search_starts(start):
    found = fit(predicted, predicted(TRUE), start)
    for name, value in TRUE.items():
        assert found.values[name] == pytest.approx(value, rel=1e-3)
    assert found.predicted == pytest.approx(predicted(TRUE), rel=1e-4)
    assert not found.doubts()


def test_one_odd_run_hardly_bends_the_fit():
    measured = predicted(TRUE)
    measured[3] *= 3
    found = fit(predicted, measured, NOTHING)
    assert found.values["sequence_s"] == pytest.approx(TRUE["sequence_s"], rel=0.25)
    assert found.values["prefill_factor"] == pytest.approx(TRUE["prefill_factor"], rel=0.25)


def test_the_intervals_hold_the_truth_about_as_often_as_they_say():
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(100):
        noisy = predicted(TRUE) * rng.normal(1.0, 0.01, len(SEQUENCES))
        found = fit(predicted, noisy, TRUE).terms["sequence_s"]
        held += found.low <= TRUE["sequence_s"] <= found.high
    assert 88 <= held <= 100


def test_less_noise_makes_narrower_intervals():
    rng = np.random.default_rng(1)
    error = rng.normal(0.0, 1.0, len(SEQUENCES))
    widths = []
    for size in (0.02, 0.01, 0.001):
        term = fit(predicted, predicted(TRUE) * (1 + size * error), TRUE).terms["step_s"]
        widths.append(term.high - term.low)
    assert widths == sorted(widths, reverse=True)


def test_terms_that_move_against_each_other_are_named():
    same = np.full(6, 32.0) + np.arange(6) * 1e-3

    def predict(terms):
        return predicted(terms, same, np.linspace(0, 1e-2, 6))

    noise = 1 + 1e-3 * np.array([1, -1, 1, 1, -1, -1])
    found = fit(predict, predict(TRUE) * noise, TRUE)
    assert [pair[:2] for pair in found.together] == [("sequence_s", "step_s")]
    assert any("cannot be told apart" in doubt for doubt in found.doubts())


def test_a_term_that_no_run_feels_stays_as_it_was_and_is_named():
    def predict(terms):
        return predicted(terms, SEQUENCES, np.zeros(len(SEQUENCES)))

    found = fit(predict, predict(TRUE), {**NOTHING, "prefill_factor": 1.7})
    assert found.values["prefill_factor"] == pytest.approx(1.7)
    assert found.unfelt == ["prefill_factor"]
    assert any("no run feels prefill_factor" in doubt for doubt in found.doubts())


def test_runs_that_are_faster_than_their_kernels_put_terms_at_their_bound():
    found = fit(predicted, 0.8 * predicted(NOTHING), TRUE)
    assert found.values == pytest.approx(NOTHING, abs=1e-6)
    assert all(term.at_bound for term in found.terms.values())
    assert sum("least value" in doubt for doubt in found.doubts()) == 3


def test_too_few_runs_are_refused():
    with pytest.raises(ValueError, match="3 figures cannot fit 3 terms"):
        fit(predicted, np.ones(3), NOTHING)


def test_the_intervals_are_those_of_least_squares() -> None:
    """Relative errors of a linear model, all small: the textbook's t-intervals of its coefficients."""
    noisy = predicted(TRUE) * (1 + 1e-4 * np.array([1, -1, 2, -2, 1, 1, -1, -1]))
    found = fit(predicted, noisy, TRUE)
    slopes = np.column_stack([np.ones_like(SEQUENCES), SEQUENCES, PREFILL_S]) / noisy[:, None]
    spread = np.sum((predicted(found.values) / noisy - 1) ** 2) / 5
    deviations = np.sqrt(np.diag(np.linalg.inv(slopes.T @ slopes)) * spread)
    for term, deviation in zip(found.terms.values(), deviations, strict=True):
        assert term.high - term.low == pytest.approx(2 * 2.5706 * deviation, rel=1e-3)  # t of 5, 97.5%
