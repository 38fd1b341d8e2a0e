"""Class probabilities of a logistic regression that never saw the label it judges.

Estimators that judge by probabilities or losses are handed these in a bench, all of them the same.
"""

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
    features: FloatArray, labels: IntArray, n_classes: int, *, random_state: int
) -> FloatArray:
    """(n, C) probabilities by 5-fold logistic regression on at most 128 standardized components.

    ``labels`` are codes; samples without a label are judged by the mean of all folds. A class that a fold's
    model has not seen has probability 0 there.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import StratifiedKFold

    check_integer(n_classes, "n_classes", minimum=2)
    labeled = np.flatnonzero(labels != MISSING)
    counts = np.bincount(labels[labeled], minlength=n_classes)
    n_folds = min(MOST_FOLDS, int(counts.max()))
    if (counts > 1).sum() < 2:  # or some fold would leave a single class to learn
        rule = "such that at least two classes have two samples or more"
        raise must_be("labels", rule, f"{int((counts > 1).sum())} such classes")
    probabilities = np.zeros((len(labels), n_classes))
    unlabeled = np.flatnonzero(labels == MISSING)
    with warnings.catch_warnings():
        # A rare class need not be in every fold, and a regression that stops early still ranks.
        warnings.filterwarnings("ignore", message="The least populated class")
        warnings.simplefilter("ignore", ConvergenceWarning)
        folds = StratifiedKFold(n_folds, shuffle=True, random_state=random_state)
        for heard, judged in folds.split(labeled, labels[labeled]):
            model = _regression(features, random_state).fit(features[labeled[heard]], labels[labeled[heard]])
            rows = labeled[judged]
            probabilities[np.ix_(rows, model.classes_)] = model.predict_proba(features[rows])
            if len(unlabeled):
                share = model.predict_proba(features[unlabeled]) / n_folds
                probabilities[np.ix_(unlabeled, model.classes_)] += share
    normalized: FloatArray = probabilities / probabilities.sum(axis=1, keepdims=True)
    return normalized


def _regression(features: FloatArray, random_state: int) -> Any:
    from sklearn.decomposition import PCA
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    n, d = features.shape
    reduced = [PCA(min(MOST_COMPONENTS, n // 2), random_state=random_state)] if d > MOST_COMPONENTS else []
    return make_pipeline(*reduced, StandardScaler(), LogisticRegression(C=0.1, max_iter=200))
