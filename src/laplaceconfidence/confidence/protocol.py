"""The interface that all confidence estimators share."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Protocol, Self

from numpy.typing import NDArray

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.graph.neighborhood import Neighborhood

EvidenceKind = Literal["features", "probabilities", "losses"]


class ConfidenceEstimator(Protocol):
    """An estimator of the probability that each given label is right.

    Every estimator also follows scikit-learn: ``get_params``, ``set_params``, ``clone`` and ``pickle`` work,
    and the constructor accepts ``missing_label``, ``n_jobs`` and ``random_state``.

    Attributes
    ----------
    evidence : {"features", "probabilities", "losses"}
        What ``fit`` takes as ``X``: feature vectors of shape (n, d), class probabilities of shape (n, C) in
        the order of the sorted classes, or losses of the given labels of shape (n,).
    classes_ : ndarray of shape (C,)
        The classes.
    confidence_ : ndarray of shape (n,)
        Probability that the given label is right, NaN where none was given.
    label_distributions_ : ndarray of shape (n, C) or None
        Probability of every class, rows summing to 1; ``None`` for estimators that take losses.
    neighborhood_ : Neighborhood or None
        The neighbors and weights that the estimate used; ``None`` if it used none.
    """

    evidence: ClassVar[EvidenceKind]
    classes_: NDArray[Any]
    confidence_: FloatArray
    label_distributions_: FloatArray | None

    @property
    def neighborhood_(self) -> Neighborhood | None:
        """The neighbors and weights that the estimate used; ``None`` if it used none."""

    def fit(self, X: Any, y: Any) -> Self:
        """Estimate the confidence of every label of ``y``.

        Estimators of this package also accept ``sample_weight``, and raise ``InvalidInputError`` if they
        cannot use weights.

        Parameters
        ----------
        X : array-like
            What ``evidence`` names.
        y : array-like of shape (n,)
            Given labels.

        Returns
        -------
        ConfidenceEstimator
            The fitted estimator.
        """
