"""Confidences shifted on the log-odds scale."""

import numpy as np
import pytest
from scipy.special import expit, logit

from laplaceconfidence.confidence.calibration import (
    fit_calibration,
    fit_calibration_of_both,
    shifted_to_mean,
    shrunk_by_class,
)


def test_shifts_reach_the_mean_and_keep_the_order() -> None:
    rng = np.random.default_rng(0)
    confidence, groups = rng.random(100), rng.integers(0, 3, 100)
    shifted = shifted_to_mean(confidence, groups, np.array([0.2, 0.5, 0.9]))
    for group, mean in enumerate([0.2, 0.5, 0.9]):
        inside = groups == group
        assert shifted[inside].mean() == pytest.approx(mean, abs=1e-6)
        np.testing.assert_array_equal(np.argsort(shifted[inside]), np.argsort(confidence[inside]))


def test_small_classes_are_drawn_to_the_others_and_large_ones_are_not() -> None:
    codes = np.repeat([0, 1, 2], [5000, 5000, 5])
    confidence = np.where(codes == 2, 0.05, 0.9)
    shrunk = shrunk_by_class(confidence, codes, 3, (10, 100))
    assert shrunk[codes == 2].mean() > 0.6
    assert shrunk[codes < 2].mean() == pytest.approx(0.9, abs=0.01)


def test_calibration_finds_the_shift_and_leaves_what_is_right_alone() -> None:
    rng = np.random.default_rng(0)
    truth = rng.uniform(0.02, 0.98, 400)
    right = rng.random(400) < truth
    assert fit_calibration(truth, right, trusted=True) == fit_calibration(truth, right, trusted=True)
    kept = fit_calibration(truth, right, trusted=True)
    assert (kept.slope, kept.offset) == (1.0, 0.0)
    optimistic = expit(logit(truth) + 5)
    np.testing.assert_allclose(
        fit_calibration(optimistic, right, trusted=False)(optimistic), truth, atol=0.12
    )


@pytest.mark.parametrize("right_number", ["confidence", "support"])
def test_calibration_leans_on_the_found_that_verified_labels_support(right_number: str) -> None:
    rng = np.random.default_rng(1)
    truth, noise = rng.uniform(0.02, 0.98, 3000), rng.uniform(0.02, 0.98, 3000)
    right = rng.random(3000) < truth
    confidence, support = (truth, noise) if right_number == "confidence" else (noise, truth)
    found = fit_calibration_of_both(confidence[:100], support[:100], right[:100], trusted=True)
    assert (found.slope > found.support_slope) == (right_number == "confidence")
    np.testing.assert_allclose(found(confidence, support), truth, atol=0.15)


@pytest.mark.parametrize("outcome", [True, False])
def test_calibration_survives_verified_labels_that_are_all_alike(outcome: bool) -> None:
    confidence = np.linspace(0.2, 0.9, 60)
    calibrated = fit_calibration(confidence, np.full(60, outcome), trusted=False)(confidence)
    assert np.isfinite(calibrated).all()
    assert (calibrated.mean() > 0.9) == outcome
