"""Thresholds and expected curves from calibrated confidences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laplaceconfidence.confidence.decisions import expected_curve, threshold_for_precision
from laplaceconfidence.exceptions import InvalidInputError


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.floats(0.05, 1))
def test_a_threshold_keeps_its_promise(confidences: list[float], precision: float) -> None:
    confidence = np.array(confidences)
    threshold = threshold_for_precision(confidence, precision)
    flagged = confidence < threshold
    if flagged.any():
        assert (1 - confidence[flagged]).mean() >= precision - 1e-9
    more = np.sort(confidence[~flagged])
    if len(more):  # one more value and the promise is broken
        assert (1 - confidence[confidence <= more[0]]).mean() < precision + 1e-9


def test_the_expected_curve_counts() -> None:
    curve = expected_curve([0.1, 0.9, 0.5, np.nan, 0.5])
    np.testing.assert_array_equal(curve.n_flagged, [1, 3, 4])
    np.testing.assert_allclose(curve.precision, [0.9, 1.9 / 3, 2.0 / 4])
    np.testing.assert_allclose(curve.recall, [0.45, 0.95, 1])
    with pytest.raises(InvalidInputError, match="between 0 and 1"):
        expected_curve([1.5])
    with pytest.raises(InvalidInputError, match="precision"):
        threshold_for_precision([0.5], 0)
