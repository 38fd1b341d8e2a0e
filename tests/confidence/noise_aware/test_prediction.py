"""Predictions of the noise-aware estimator for samples that nobody labeled."""

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import kneighbors_graph

from laplaceconfidence.confidence.noise_aware import NoiseAwareConfidence
from laplaceconfidence.exceptions import InvalidInputError, LaplaceConfidenceWarning

X, Y = load_digits(return_X_y=True)
X.flags.writeable = Y.flags.writeable = False
TRAIN = np.arange(len(Y)) % 3 != 0
NEW = ~TRAIN


def noisy(rate: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    labels = Y[TRAIN]
    return np.where(rng.random(len(labels)) < rate, rng.integers(0, 10, len(labels)), labels)


def fitted(*arguments: Any, n_rounds: Any = 2, **more: Any) -> NoiseAwareConfidence:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LaplaceConfidenceWarning)
        return NoiseAwareConfidence(n_jobs=1, n_rounds=n_rounds).fit(*arguments, **more)


@pytest.fixture(scope="module")
def model() -> NoiseAwareConfidence:
    return fitted(X[TRAIN], noisy(0.4, 0))


def test_new_samples_are_classified_almost_as_well_as_those_with_labels(model: NoiseAwareConfidence) -> None:
    plain = LogisticRegression(max_iter=2000).fit(X[TRAIN] / 16, noisy(0.4, 0))
    score = model.score(X[NEW], Y[NEW])
    assert score > plain.score(X[NEW] / 16, Y[NEW]) + 0.03
    assert score > (model.transduction_ == Y[TRAIN]).mean() - 0.03


def test_predicted_probabilities_are_those_of_the_true_class(model: NoiseAwareConfidence) -> None:
    p = model.predict_proba(X[NEW])
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(X[NEW]), model.classes_[p.argmax(axis=1)])
    right = p.argmax(axis=1) == Y[NEW]
    assert abs(p.max(axis=1).mean() - right.mean()) < 0.05


def test_training_samples_are_predicted_as_their_most_probable_class(model: NoiseAwareConfidence) -> None:
    assert (model.predict(X[TRAIN]) == model.transduction_).mean() > 0.95


def test_predictions_do_not_depend_on_earlier_ones_nor_on_pickling(model: NoiseAwareConfidence) -> None:
    again = fitted(X[TRAIN], noisy(0.4, 0))
    copy = pickle.loads(pickle.dumps(again))  # noqa: S301
    expected = model.predict_proba(X[NEW][:50])
    np.testing.assert_array_equal(copy.predict_proba(X[NEW][:50]), expected)
    np.testing.assert_array_equal(again.predict_proba(X[NEW])[:50].argmax(axis=1), expected.argmax(axis=1))
    used = pickle.loads(pickle.dumps(model))  # noqa: S301
    np.testing.assert_array_equal(used.predict_proba(X[NEW][:50]), expected)


def test_one_round_learns_the_labels_themselves() -> None:
    model = fitted(X[TRAIN], noisy(0.4, 0), n_rounds=1)
    p = model.predict_proba(X[NEW])
    right = p.argmax(axis=1) == Y[NEW]
    assert right.mean() > 0.85
    assert abs(p.max(axis=1).mean() - right.mean()) < 0.07


def test_missing_and_audited_labels_and_words() -> None:
    labels = noisy(0.4, 0).astype(object)
    labels[::5] = None
    truth = Y[TRAIN]
    audited = {row: f"digit {truth[row]}" for row in range(0, 200, 2)}
    words = [None if label is None else f"digit {label}" for label in labels]
    model = fitted(X[TRAIN], words, audited=audited)
    expected = np.array([f"digit {label}" for label in Y[NEW]])
    assert model.score(X[NEW], expected) > 0.9


def test_many_classes() -> None:
    features, classes = make_blobs(1800, 16, centers=60, cluster_std=2.0, random_state=0)
    train = np.arange(1800) % 3 != 0
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(1200) < 0.3, rng.integers(0, 60, 1200), classes[train])
    model = fitted(features[train], labels)
    p = model.predict_proba(features[~train])
    assert p.shape == (600, 60)
    assert (p.argmax(axis=1) == classes[~train]).mean() > 0.85


def test_labels_that_features_do_not_explain_fall_back_and_still_predict() -> None:
    labels = np.random.default_rng(0).permutation(Y[TRAIN])
    model = fitted(X[TRAIN], labels)
    assert model.fallback_ is not None
    np.testing.assert_allclose(model.predict_proba(X[NEW]).sum(axis=1), 1)


def test_a_graph_beside_features_supplies_the_solution_at_the_neighbors() -> None:
    graph = kneighbors_graph(X[TRAIN], 15, mode="connectivity")
    model = fitted(X[TRAIN], noisy(0.2, 0), knn_graph=graph)
    assert model.score(X[NEW], Y[NEW]) > 0.9


def test_without_features_new_samples_have_no_place_in_the_graph() -> None:
    graph = kneighbors_graph(X[TRAIN], 15, mode="connectivity")
    model = fitted(None, noisy(0.2, 0), knn_graph=graph)
    with pytest.raises(InvalidInputError, match="cannot be compared"):
        model.predict(X[NEW])


def test_predicted_probabilities_join_where_they_helped() -> None:
    rng = np.random.default_rng(1)
    useful = 0.7 * np.eye(10)[Y] + 0.3 * rng.dirichlet(np.ones(10), len(Y))
    noise = rng.normal(size=X.shape)
    labels = noisy(0.4, 0)
    model = fitted(noise[TRAIN] + X[TRAIN] / 16, labels, pred_probs=useful[TRAIN])
    with_them = model.predict(noise[NEW] + X[NEW] / 16, pred_probs=useful[NEW])
    without = model.predict(noise[NEW] + X[NEW] / 16)
    assert (with_them == Y[NEW]).mean() > max(0.95, (without == Y[NEW]).mean())
    alone = fitted(None, labels, pred_probs=useful[TRAIN])
    assert (alone.predict(None, pred_probs=useful[NEW]) == Y[NEW]).mean() > 0.95
    with pytest.raises(InvalidInputError, match="'pred_probs'"):
        alone.predict(None)
    with pytest.raises(InvalidInputError, match="'X'"):
        alone.predict(X[NEW], pred_probs=useful[NEW])


def test_what_cannot_be_used_is_named(model: NoiseAwareConfidence) -> None:
    with pytest.raises(InvalidInputError, match=r"'pred_probs'.*fitted without"):
        model.predict_proba(X[NEW], pred_probs=np.full((NEW.sum(), 10), 0.1))
    with pytest.raises(InvalidInputError, match="'X'"):
        model.predict_proba(None)
    with pytest.raises(ValueError, match="features"):
        model.predict(X[NEW][:, :10])
    with pytest.raises(InvalidInputError, match="'sample_weight'"):
        NoiseAwareConfidence().fit(X, Y, sample_weight=np.ones(len(Y)))
    with pytest.raises(TypeError, match="weights"):
        NoiseAwareConfidence().fit(X, Y, weights=np.ones(len(Y)))
