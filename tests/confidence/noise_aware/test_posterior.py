"""From a pool to confidences."""

import numpy as np
import pytest

from laplaceconfidence.confidence.noise_aware.posterior import Posterior, calibrate_posterior


def test_a_rare_class_does_not_come_first_where_no_noise_is_found() -> None:
    codes = np.repeat([0, 1, 2], [200, 200, 5])
    confidence = np.where(codes == 2, 0.9, np.linspace(0.95, 0.9999, 405))
    distributions = np.column_stack([confidence, 1 - confidence, np.zeros(405)])
    support = np.full(405, 0.5)
    found = Posterior(np.arange(405), distributions, np.zeros(405, np.int64), confidence, support)
    assert not found.identifiable
    calibrate_posterior(found, confidence, support, codes, None, 3, fallback=False)
    assert found.confidence[codes == 2].min() > np.quantile(found.confidence[codes < 2], 0.1)
    np.testing.assert_allclose(found.confidence[codes < 2], confidence[codes < 2])


def two_classes(by_matrix: list[float], support: list[float]) -> Posterior:
    w = np.array(by_matrix)
    return Posterior(
        np.arange(len(w)),
        np.column_stack([w, 1 - w]),
        np.zeros(len(w), np.int64),
        w,
        np.array(support),
    )


def test_unidentified_noise_has_the_order_of_a_score_and_the_mean_of_both_readings() -> None:
    found = two_classes([0.999, 0.995, 0.99, 0.999], [0.5, 0.9, 0.6, 0.7])
    assert not found.identifiable
    low, high = found.bracket
    found.order_by(np.array([0.2, 0.4, 0.6, 0.8]))
    assert (np.diff(found.confidence) > 0).all()
    assert found.confidence.mean() == pytest.approx(1 - high / 2)
    assert found.bracket == (low, high)
    assert found.confidence.min() > 0.5  # in one of the readings all labels are right
    np.testing.assert_allclose(found.distributions.sum(axis=1), 1)


def test_a_score_orders_labels_only_as_far_as_the_matrix_explains_too_little() -> None:
    score = np.array([0.2, 0.4, 0.6, 0.8])
    little = two_classes([0.9, 0.92, 0.91, 0.89], [0.5, 0.5, 0.6, 0.6])
    assert little.identifiable
    assert little.explained == pytest.approx(0.095 / 0.225)
    little.order_by(score)
    assert little.confidence.mean() == pytest.approx(0.905)
    assert little.confidence.argmax() == 3
    much = two_classes([0.6, 0.7, 0.5, 0.4], [0.5, 0.5, 0.4, 0.4])
    assert much.explained == 1
    much.order_by(score)
    np.testing.assert_allclose(much.confidence, [0.6, 0.7, 0.5, 0.4], atol=1e-6)
