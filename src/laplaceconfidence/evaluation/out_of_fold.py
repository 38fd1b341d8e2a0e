"""Class probabilities of samples, predicted by models that were not trained on them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.validation import check_integer, must_be

MOST_FOLDS = 5
MOST_COMPONENTS = 128


def out_of_fold_probabilities(
    features: FloatArray, labels: IntArray, n_classes: int, *, random_state: int, model: Any = None
) -> FloatArray:
    """Predict class probabilities by stratified 5-fold cross-validation.

    There are fewer folds if no class has five samples. A class that is missing from a training fold gets
    probability 0 from that fold's model.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        Feature vectors.
    labels : ndarray of shape (n,)
        Codes of the labels. Samples without one get the mean of the predictions of all folds.
    n_classes : int
        Number of classes, at least 2.
    random_state : int
        Seed of the folds and of the PCA.
    model : classifier or None, default=None
        A scikit-learn classifier with ``predict_proba``, which is cloned for every fold. ``None`` is a
        logistic regression on standardized features, reduced to 128 principal components if there are more.

    Returns
    -------
    ndarray of shape (n, n_classes)
        Rows sum to 1.
    """
    from sklearn.base import clone
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import StratifiedKFold

    check_integer(n_classes, "n_classes", minimum=2)
    labeled = np.flatnonzero(labels != MISSING)
    counts = np.bincount(labels[labeled], minlength=n_classes)
    n_folds = min(MOST_FOLDS, int(counts.max()))
    if (counts > 1).sum() < 2:  # otherwise the training part of a fold could have a single class
        rule = "such that at least two classes have two samples or more"
        raise must_be("labels", rule, f"{int((counts > 1).sum())} such classes")
    probabilities = np.zeros((len(labels), n_classes))
    unlabeled = np.flatnonzero(labels == MISSING)
    model = _logistic_regression(features, random_state) if model is None else model
    with warnings.catch_warnings():
        # A rare class need not be in every fold, and a regression that stops early is good enough.
        warnings.filterwarnings("ignore", message="The least populated class")
        warnings.simplefilter("ignore", ConvergenceWarning)
        folds = StratifiedKFold(n_folds, shuffle=True, random_state=random_state)
        for training, held_out in folds.split(labeled, labels[labeled]):
            fitted = clone(model).fit(features[labeled[training]], labels[labeled[training]])
            rows = labeled[held_out]
            probabilities[np.ix_(rows, fitted.classes_)] = fitted.predict_proba(features[rows])
            if len(unlabeled):
                share = fitted.predict_proba(features[unlabeled]) / n_folds
                probabilities[np.ix_(unlabeled, fitted.classes_)] += share
    normalized: FloatArray = probabilities / probabilities.sum(axis=1, keepdims=True)
    return normalized


def _logistic_regression(features: FloatArray, random_state: int) -> Any:
    from sklearn.decomposition import PCA
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    n, d = features.shape
    reduced = [PCA(min(MOST_COMPONENTS, n // 2), random_state=random_state)] if d > MOST_COMPONENTS else []
    return make_pipeline(*reduced, StandardScaler(), LogisticRegression(C=0.1, max_iter=200))
