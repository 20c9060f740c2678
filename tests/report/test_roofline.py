"""Points lie where their work puts them, under roofs that meet at the ridge."""

import numpy as np
import pandas as pd

from servesim.report.roofline import roofline, roofs_in_words

POINTS = pd.DataFrame(
    {
        "series": ["decode", "prefill", "decode", "decode"],
        "intensity": [1.0, 200.0, 2.0, np.inf],
        "flops_per_s": [1e12, 4e14, 2e12, 1e12],
        "text": ["a", "b <c>", "d", "moves nothing"],
    }
)
PEAKS = {"bf16": 1e15, "fp8": 2e15}


def test_every_point_that_has_a_place_is_drawn_in_its_series() -> None:
    decode, prefill, *roofs = roofline(POINTS, PEAKS, 2e12).data
    assert (list(decode.x), list(decode.y)) == ([1, 2], [1e12, 2e12])
    assert (list(prefill.x), prefill.text[0]) == ([200], "b &lt;c&gt;")
    assert [roof.name for roof in roofs] == ["fp8 roof", "bf16 roof"]


def test_a_roof_is_the_lesser_of_peak_and_bandwidth_and_spans_the_points() -> None:
    for roof, peak in zip(roofline(POINTS, PEAKS, 2e12).data[2:], (2e15, 1e15), strict=True):
        np.testing.assert_allclose(roof.y, np.minimum(peak, 2e12 * np.array(roof.x)))
        assert roof.x[0] < 1
        assert roof.x[1] == peak / 2e12
        assert roof.x[-1] > 200


def test_without_points_there_are_roofs() -> None:
    assert len(roofline(POINTS.iloc[:0], PEAKS, 2e12).data) == 2


def test_words() -> None:
    assert roofs_in_words(PEAKS, 2e12) == "Roofs of one GPU: bf16 1,000 TFLOP/s, fp8 2,000 TFLOP/s; 2 TB/s."
