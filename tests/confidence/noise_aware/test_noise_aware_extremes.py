"""Data that support little: the answer must stay sane, finite and honest about it."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from laplaceconfidence.confidence.noise_aware import NoiseAwareConfidence
from laplaceconfidence.exceptions import LaplaceConfidenceWarning


def blobs(n_classes: int, members: int, seed: int = 0, distance: float = 4.0, width: int = 16) -> tuple:
    rng = np.random.default_rng(seed)
    classes = np.repeat(np.arange(n_classes), members)
    centers = rng.normal(size=(n_classes, width)) * distance
    return centers[classes] + rng.normal(size=(len(classes), width)), classes


def fitted(
    X: np.ndarray, y: np.ndarray, random_state: int | None = None, **arguments: object
) -> NoiseAwareConfidence:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", LaplaceConfidenceWarning)
        return NoiseAwareConfidence(n_jobs=1, random_state=random_state).fit(X, y, **arguments)


def assert_sane(model: NoiseAwareConfidence, y: np.ndarray) -> None:
    labeled = np.array([value == value and value is not None for value in y.tolist()])
    confidence = model.confidence_[labeled]
    assert np.isfinite(confidence).all()
    assert (confidence >= 0).all()
    assert (confidence <= 1).all()
    assert np.isnan(model.confidence_[~labeled]).all()
    assert np.isfinite(model.label_distributions_).all()
    np.testing.assert_allclose(model.label_distributions_.sum(axis=1), 1, atol=1e-4)
    np.testing.assert_allclose(model.transition_matrix_.sum(axis=1), 1, atol=1e-6)
    low, high = model.noise_rate_bracket_
    assert 0 <= low <= model.noise_rate_ <= high <= 1
    assert 0 <= model.threshold_for(0.9) <= 1.1


def test_two_samples_a_class() -> None:
    X, y = blobs(20, 2)
    model = fitted(X, y)
    assert_sane(model, y)
    assert model.noise_rate_ < 0.3


def test_many_classes_with_five_samples_each() -> None:
    X, y = blobs(200, 5)
    given_labels = y.copy()
    wrong = np.random.default_rng(0).random(len(y)) < 0.2
    given_labels[wrong] = np.random.default_rng(1).integers(0, 200, wrong.sum())
    model = fitted(X, given_labels)
    assert_sane(model, given_labels)
    assert roc_auc_score(given_labels == y, model.confidence_) > 0.9
    assert abs(model.noise_rate_ - wrong.mean()) < 0.1


def test_labels_that_have_nothing_to_do_with_the_features() -> None:
    X, y = blobs(5, 60)
    shuffled = np.random.default_rng(0).permutation(y)
    with pytest.warns(LaplaceConfidenceWarning):
        model = NoiseAwareConfidence(n_jobs=1).fit(X, shuffled)
    assert_sane(model, shuffled)
    assert not model.identifiable_


def test_every_label_wrong_in_the_same_way() -> None:
    X, y = blobs(5, 60)
    assert_sane(fitted(X, (y + 1) % 5), (y + 1) % 5)


def test_a_label_that_is_never_the_truth() -> None:
    X, y = blobs(4, 150)
    given_labels = y.copy()
    wrong = np.random.default_rng(0).random(len(y)) < 0.15
    given_labels[wrong] = 4
    model = fitted(X, given_labels)
    assert_sane(model, given_labels)
    # A class that is everywhere can be noise or truth; the order must show the suspects all the same.
    assert roc_auc_score(given_labels != 4, model.confidence_) > 0.9


def test_a_class_that_features_do_not_show_is_warned_of() -> None:
    X, y = load_digits(return_X_y=True)
    names = np.array([*"0123456789", "smudged"])
    given_labels = names[np.where(np.random.default_rng(0).random(len(y)) < 0.1, 10, y)]
    with pytest.warns(LaplaceConfidenceWarning, match=r"labels of 'smudged' are doubted"):
        NoiseAwareConfidence(n_jobs=1, random_state=0).fit(X, given_labels)


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_rare_labels_that_features_say_nothing_about_are_left_as_they_are(share: float) -> None:
    X, _ = blobs(10, 80)
    rare = (np.random.default_rng(1).random(len(X)) < share).astype(int)
    model = fitted(X, rare, random_state=0)
    assert_sane(model, rare)
    assert model.fallback_ is not None
    assert (model.transduction_ != rare).mean() < 0.005


def test_one_class_is_nearly_everything() -> None:
    X, y = blobs(2, 2000)
    kept = np.concatenate([np.arange(2000), [2000, 2001]])
    model = fitted(X[kept], y[kept])
    assert_sane(model, y[kept])
    assert model.noise_rate_ < 0.02
    assert (model.confidence_[-2:] > 0.5).all()


def test_a_class_of_five_among_thousands_is_not_flagged_wholesale() -> None:
    X, y = blobs(6, 500, distance=1.5)
    kept = np.flatnonzero((y != 5) | (np.arange(len(y)) % 100 == 0))
    given_labels = y[kept].copy()
    wrong = (np.random.default_rng(0).random(len(kept)) < 0.2) & (given_labels != 5)
    given_labels[wrong] = np.random.default_rng(1).integers(0, 5, wrong.sum())
    model = fitted(X[kept], given_labels)
    assert_sane(model, given_labels)
    assert (model.confidence_[given_labels == 5] > 0.5).mean() >= 0.6


@pytest.mark.parametrize("n", [2, 3, 5, 9, 12, 20])
def test_hardly_any_samples(n: int) -> None:
    X = np.random.default_rng(0).normal(size=(n, 3))
    y = np.arange(n) % 2
    assert_sane(fitted(X, y), y)


def test_hardly_any_labels() -> None:
    X, y = blobs(3, 100)
    y = y.astype(float)
    y[np.random.default_rng(0).permutation(300)[:288]] = np.nan
    assert_sane(fitted(X, y), y)


def test_duplicates_zero_rows_and_constant_columns() -> None:
    X, y = blobs(3, 40)
    X[:20] = X[0]
    X[50:60] = 0
    X[:, 3] = 7
    assert_sane(fitted(X, y), y)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_features_of_any_scale(scale: float) -> None:
    X, y = blobs(3, 40)
    np.testing.assert_allclose(
        fitted((X * scale).astype(np.float64), y).confidence_, fitted(X, y).confidence_, atol=1e-2
    )


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 1000),
    n_classes=st.integers(2, 6),
    n=st.integers(4, 80),
    width=st.integers(1, 8),
    missing=st.floats(0, 0.6),
)
def test_random_data_never_break_it(seed: int, n_classes: int, n: int, width: int, missing: float) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, width)).round(1)
    y = rng.choice(n_classes, n, p=rng.dirichlet(np.full(n_classes, 0.5))).astype(float)
    y[:2] = [0, 1]
    y[2:][rng.random(n - 2) < missing] = np.nan
    X[0] += 1
    assert_sane(fitted(X, y), y)
