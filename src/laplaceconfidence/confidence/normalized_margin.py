"""Normalized margin: the predicted probability of the given label against that of the best other class."""

from __future__ import annotations

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.inputs import at_given_labels
from laplaceconfidence.confidence.self_confidence import SelfConfidence


class NormalizedMargin(SelfConfidence):
    """Half of one plus the margin of the given label: (p[y] - max of the other classes + 1) / 2.

    The score lies in [0, 1]. It is 0.5 where the given label and the best other class are equally likely, and
    1 if there is only one class. The ranking is the "normalized margin" of [1]_. The probabilities should
    come from a model that was not trained on the sample, as out-of-fold probabilities do.

    Parameters
    ----------
    classes : array-like of shape (C,) or None, default=None
        The class of every column of ``X``, in order. ``None`` takes the distinct labels of ``y``, sorted;
        pass the classes if one has a column but no label.
    missing_label : object, default=None
        A value of ``y`` that means "no label", besides ``None``, NaN and the empty string.
    n_jobs : int or None, default=None
        Accepted because all estimators have it; the computation uses one thread.
    random_state : int, Generator, RandomState or None, default=None
        Accepted because all estimators have it; the estimate is deterministic.

    Attributes
    ----------
    confidence_ : ndarray of shape (n,)
        Probability that the given label is right, NaN where none was given.
    label_distributions_ : ndarray of shape (n, C)
        The class probabilities that were passed, with rows that sum to 1.
    classes_ : ndarray of shape (C,)
        The class of every column.
    neighborhood_ : None
        This estimator uses no neighbors.

    References
    ----------
    .. [1] Northcutt, Jiang, Chuang, "Confident Learning: Estimating Uncertainty in Dataset Labels", Journal
       of Artificial Intelligence Research, 2021.

    Examples
    --------
    >>> from laplaceconfidence import NormalizedMargin
    >>> probabilities = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]]
    >>> NormalizedMargin().fit(probabilities, ["cat", "dog", "dog"]).confidence_
    array([0.9, 0.8, 0.3])
    """

    def _scores(self, distributions: FloatArray, codes: IntArray) -> FloatArray:
        others = distributions.copy()
        others[np.arange(len(others)), np.maximum(codes, 0)] = 0
        margins: FloatArray = (at_given_labels(distributions, codes) - others.max(axis=1) + 1) / 2
        return margins
