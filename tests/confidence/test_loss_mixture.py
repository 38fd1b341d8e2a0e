"""The Gaussian mixture of losses against expectation maximization written out."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from laplaceconfidence.confidence.loss_mixture import GaussianLossMixture
from laplaceconfidence.exceptions import InvalidInputError


def two_heaps(seed: int = 0, n_low: int = 120, n_high: int = 60) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    losses = np.concatenate([rng.gamma(2, 0.1, n_low), rng.normal(3, 0.7, n_high)])
    return losses, rng.integers(0, 3, len(losses))


def naive_posterior(losses: Any, reg_covar: float, n_steps: int = 2000) -> Any:
    x = (losses - losses.min()) / (losses.max() - losses.min())
    low = (x < 0.5).astype(float)
    responsibility = np.stack([low, 1 - low])
    for _ in range(n_steps):
        weights = responsibility.mean(axis=1)
        means = (responsibility * x).sum(axis=1) / responsibility.sum(axis=1)
        spread = (responsibility * (x - means[:, None]) ** 2).sum(axis=1) / responsibility.sum(axis=1)
        deviations = np.sqrt(spread + reg_covar)
        joint = np.stack([weights[c] * norm.pdf(x, means[c], deviations[c]) for c in range(2)])
        responsibility = joint / joint.sum(axis=0)
    return responsibility[means.argmin()]


def test_posterior_agrees_with_expectation_maximization_written_out() -> None:
    losses, y = two_heaps()
    mixture = GaussianLossMixture(max_iter=2000, tol=1e-12, random_state=0).fit(losses, y)
    np.testing.assert_allclose(mixture.confidence_, naive_posterior(losses, 5e-4), atol=1e-4)
    assert mixture.converged_


def test_posterior_is_that_of_the_parameters_kept() -> None:
    losses, y = two_heaps()
    mixture = GaussianLossMixture(random_state=0).fit(losses, y)
    x = (losses - losses.min()) / (losses.max() - losses.min())
    low, high = (
        mixture.weights_[c] * norm.pdf(x, mixture.means_[c], np.sqrt(mixture.variances_[c])) for c in range(2)
    )
    np.testing.assert_allclose(mixture.confidence_, low / (low + high), rtol=1e-6, atol=1e-12)
    assert mixture.means_[0] < mixture.means_[1]
    assert mixture.n_iter_ <= 10


def test_the_small_losses_are_the_right_ones() -> None:
    losses, y = two_heaps()
    confidence = GaussianLossMixture(random_state=0).fit(losses, y).confidence_
    assert (confidence[:120] > 0.5).mean() > 0.95
    assert (confidence[120:] < 0.5).mean() > 0.95


def test_scale_and_offset_of_the_losses_do_not_matter() -> None:
    losses, y = two_heaps()
    original = GaussianLossMixture(random_state=0).fit(losses, y).confidence_
    moved = GaussianLossMixture(random_state=0).fit(losses * 3e7 - 5, y).confidence_
    np.testing.assert_allclose(moved, original, atol=1e-6)


def test_losses_that_were_scaled_before_can_be_taken_as_they_are() -> None:
    rng = np.random.default_rng(0)
    losses = np.concatenate([rng.normal(0.2, 0.02, 60), rng.normal(0.3, 0.02, 40)])
    labels = np.zeros(100)
    as_given = GaussianLossMixture(rescale=False, random_state=0).fit(losses, labels)
    np.testing.assert_allclose(as_given.means_, [0.2, 0.3], atol=0.02)
    rescaled = GaussianLossMixture(random_state=0).fit(losses, labels)
    assert rescaled.means_[1] - rescaled.means_[0] > 0.3
    # The variance that is added weighs more where the losses are not spread over the whole of [0, 1].
    assert np.abs(as_given.confidence_ - rescaled.confidence_).max() > 0.01


def test_losses_of_missing_labels_are_not_looked_at() -> None:
    losses, y = two_heaps()
    labels = y.astype(object)
    labels[::5] = None
    with_nan = np.where(labels == None, np.nan, losses)  # noqa: E711
    present = labels != None  # noqa: E711
    mixture = GaussianLossMixture(random_state=0).fit(with_nan, labels)
    alone = GaussianLossMixture(random_state=0).fit(losses[present], y[present])
    assert np.isnan(mixture.confidence_[~present]).all()
    np.testing.assert_allclose(mixture.confidence_[present], alone.confidence_)


@pytest.mark.parametrize("losses", [np.full(20, 0.7), np.full(20, 0.1, np.float32) + np.float32(1e-9), [3.0]])
def test_losses_that_are_alike_tell_nothing(losses: Any) -> None:
    mixture = GaussianLossMixture().fit(losses, [0] * len(losses))
    assert (mixture.confidence_ == 0.5).all()
    assert mixture.label_distributions_ is None


@settings(max_examples=50, deadline=None)
@given(
    losses=st.lists(st.floats(-1e300, 1e300) | st.sampled_from([0.0, 1.0, 5e-324, 1e308, -1e308]), min_size=1)
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_any_finite_losses_give_probabilities(losses: list[float]) -> None:
    confidence = GaussianLossMixture(random_state=0).fit(losses, ["a"] * len(losses)).confidence_
    assert ((confidence >= 0) & (confidence <= 1)).all()


def test_a_loss_that_is_not_finite_is_shown_with_its_row() -> None:
    losses, y = two_heaps()
    losses[[4, 9]] = np.nan, np.inf
    with pytest.raises(InvalidInputError, match=r"'X'.*1 NaN and 1 infinite.*row 4"):
        GaussianLossMixture().fit(losses, y)


@pytest.mark.parametrize(
    ("settings_", "parameter"),
    [({"max_iter": 0}, "max_iter"), ({"tol": -1}, "tol"), ({"reg_covar": 0}, "reg_covar")],
)
def test_settings_that_break_a_rule_are_named(settings_: dict[str, Any], parameter: str) -> None:
    losses, y = two_heaps()
    with pytest.raises(InvalidInputError, match=f"'{parameter}'"):
        GaussianLossMixture(**settings_).fit(losses, y)
