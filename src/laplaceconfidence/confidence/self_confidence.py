"""Self-confidence: the predicted probability of the given label."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.inputs import at_given_labels, refuse_sample_weight
from laplaceconfidence.confidence.probabilities import check_probabilities
from laplaceconfidence.confidence.protocol import EvidenceKind


class SelfConfidence(BaseEstimator):
    """The predicted probability of the given label, p[y].

    The probabilities should come from a model that was not trained on the sample, as out-of-fold
    probabilities do. The score is called "self-confidence" in [1]_.

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
    >>> from laplaceconfidence import SelfConfidence
    >>> probabilities = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]]
    >>> SelfConfidence().fit(probabilities, ["cat", "dog", "dog"]).confidence_
    array([0.9, 0.8, 0.3])
    """

    evidence: ClassVar[EvidenceKind] = "probabilities"
    neighborhood_: ClassVar[None] = None

    def __init__(
        self,
        *,
        classes: Any = None,
        missing_label: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.classes = classes
        self.missing_label = missing_label
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, sample_weight: None = None) -> Self:
        """Compute the score of every given label from its class probabilities.

        Parameters
        ----------
        X : array-like of shape (n, C)
            Class probabilities, rows summing to 1.
        y : array-like of shape (n,)
            Given labels.
        sample_weight : None
            Not supported: other values raise ``InvalidInputError``.

        Returns
        -------
        SelfConfidence or NormalizedMargin
            The fitted estimator.
        """
        refuse_sample_weight(self, sample_weight, "each confidence depends on one row of 'X' only")
        self.label_distributions_, given = check_probabilities(
            X, y, classes=self.classes, missing_label=self.missing_label
        )
        self.classes_ = given.class_values
        self.confidence_ = self._scores(self.label_distributions_, given.codes)
        return self

    def _scores(self, distributions: FloatArray, codes: IntArray) -> FloatArray:
        return at_given_labels(distributions, codes)
