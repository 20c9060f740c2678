"""Steps on the roofline, and typical ones taken apart."""

import numpy as np
import pytest

from servesim.config.saved import saved_deployments
from servesim.report.run.steps import breakdown_figure, roofline_points, typical_steps
from tests.report.run.runs import KINDS, made

SERVED = [kind for kind in KINDS if kind != "nothing_served"]


@pytest.mark.parametrize("kind", SERVED)
def test_points_are_the_leaps_and_lie_under_the_roof(kind: str) -> None:
    run = made(kind)
    for pool in run.pools:
        points = roofline_points(run, pool)
        assert len(points) == len(run.steps_of(pool))
        roof = np.minimum(pool.peak_flops_per_s, points.intensity * pool.gpu.hbm_bytes_per_s)
        assert (points.flops_per_s <= roof * (1 + 1e-9)).all()


@pytest.mark.parametrize("kind", SERVED)
def test_operations_sum_to_a_step_of_the_typical_length(kind: str) -> None:
    run = made(kind)
    for pool, deployment in zip(run.pools, saved_deployments(run.summary["scenario"]), strict=True):
        for typical in typical_steps(run.steps_of(pool)):
            operations = typical.operations(deployment.step_time)
            chunks = [(typical.chunk, 0)] if typical.chunk else []
            seconds = deployment.step_time.mixed(typical.decodes, typical.context, chunks)
            assert sum(one.seconds for one in operations) == pytest.approx(seconds)
            if not typical.chunk:  # a decode step is known whole: it is one of the run's
                lengths = run.steps_of(pool).first_step_s
                assert np.abs(lengths / seconds - 1).min() < 1e-6


def test_half_of_the_time_went_to_shorter_steps() -> None:
    run = made("continuous")
    decode = run.steps[run.steps.prefill_tokens == 0]
    typical, _ = typical_steps(run.steps)
    (at,) = {
        float(first)
        for first, sequences, context in zip(
            decode.first_step_s, decode.sequences, decode.context_tokens, strict=True
        )
        if (sequences, context) == (typical.decodes, typical.context)
    }
    shorter = decode.seconds[decode.first_step_s < at].sum() / decode.seconds.sum()
    upto = decode.seconds[decode.first_step_s <= at].sum() / decode.seconds.sum()
    assert shorter <= 0.5 <= upto


def test_bars_are_milliseconds_of_operations() -> None:
    run = made("continuous")
    (deployment,) = saved_deployments(run.summary["scenario"])
    steps = [(each, each.operations(deployment.step_time)) for each in typical_steps(run.steps)]
    for bar, (_, operations) in zip(breakdown_figure(steps).data, steps, strict=True):
        assert list(bar.x) == [1e3 * one.seconds for one in operations]
        assert list(bar.customdata) == [one.bound for one in operations]
