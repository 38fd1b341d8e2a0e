"""Out-of-fold probabilities: honest, whole rows, and gaps in labels and classes are no trouble."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from laplaceconfidence.data.digits import load_digits
from laplaceconfidence.evaluation.out_of_fold import out_of_fold_probabilities
from laplaceconfidence.exceptions import InvalidInputError


def test_they_are_those_of_a_plain_cross_validation() -> None:
    data = load_digits().subset(np.arange(300))
    assert data.features is not None
    found = out_of_fold_probabilities(data.features, data.labels, 10, random_state=3)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=200))
    folds = StratifiedKFold(5, shuffle=True, random_state=3)
    expected = cross_val_predict(model, data.features, data.labels, cv=folds, method="predict_proba")
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_another_model_may_be_used() -> None:
    data = load_digits().subset(np.arange(300))
    assert data.features is not None
    model = LogisticRegression(C=0.01, max_iter=1_000)
    found = out_of_fold_probabilities(data.features, data.labels, 10, random_state=3, model=model)
    folds = StratifiedKFold(5, shuffle=True, random_state=3)
    expected = cross_val_predict(model, data.features, data.labels, cv=folds, method="predict_proba")
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert not hasattr(model, "classes_")


def test_a_label_does_not_change_its_own_probability() -> None:
    rng = np.random.default_rng(0)
    features, labels = rng.normal(size=(80, 60)), rng.integers(2, size=80)  # nothing to learn, much to recall
    rows = np.arange(80)
    found = out_of_fold_probabilities(features, labels, 2, random_state=0)[rows, labels]
    recalled = LogisticRegression(C=0.1).fit(features, labels).predict_proba(features)[rows, labels]
    assert recalled.mean() > 0.65
    assert found.mean() < 0.55


def test_missing_labels_and_rare_classes_have_whole_rows() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], [20, 20, 1])
    labels[:3] = -1
    features = rng.normal(size=(41, 200))
    found = out_of_fold_probabilities(features, labels, 4, random_state=0)
    assert found.shape == (41, 4)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert not found[:, 3].any()
    assert found[labels == 2, 2] == 0  # no fold's model has seen another of its kind


def test_too_little_to_learn_from_is_said() -> None:
    with pytest.raises(InvalidInputError, match="labels"):
        out_of_fold_probabilities(np.zeros((4, 2)), np.array([0, 0, 0, 1]), 2, random_state=0)
