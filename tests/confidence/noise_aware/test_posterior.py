"""From a pool to confidences."""

import numpy as np
import pytest

from laplaceconfidence.confidence.noise_aware.posterior import Posterior, calibrate_posterior


def test_a_rare_class_does_not_come_first_where_no_noise_is_found() -> None:
    codes = np.repeat([0, 1, 2], [200, 200, 5])
    confidence = np.where(codes == 2, 0.9, np.linspace(0.95, 0.9999, 405))
    distributions = np.column_stack([confidence, 1 - confidence, np.zeros(405)])
    found = Posterior(
        np.arange(405), distributions, np.zeros(405, np.int64), confidence, confidence, identifiable=False
    )
    calibrate_posterior(found, confidence, codes, None, 3, fallback=False)
    assert found.confidence[codes == 2].min() > np.quantile(found.confidence[codes < 2], 0.1)
    np.testing.assert_allclose(found.confidence[codes < 2], confidence[codes < 2])


def test_a_found_is_put_in_another_order_and_keeps_its_mean() -> None:
    confidence = np.array([0.99, 0.95, 0.9, 0.99])
    distributions = np.column_stack([confidence, 1 - confidence])
    found = Posterior(
        np.arange(4), distributions, np.zeros(4, np.int64), confidence, confidence, identifiable=False
    )
    found.rank_by(np.array([0.2, 0.4, 0.6, 0.8]))
    assert (np.diff(found.confidence) > 0).all()
    assert found.confidence.mean() == pytest.approx(confidence.mean())
    np.testing.assert_allclose(found.distributions.sum(axis=1), 1)
