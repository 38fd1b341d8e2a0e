"""What every confidence estimator looks like, so that they are interchangeable."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Protocol, Self

from numpy.typing import NDArray

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.graph.neighborhood import Neighborhood

Evidence = Literal["features", "probabilities", "losses"]


class ConfidenceEstimator(Protocol):
    """From evidence about the samples and their given labels to the probability that each label is right.

    ``evidence`` says what ``fit`` takes as ``X``: feature vectors (n, d), class probabilities (n, C) in the
    order of the sorted classes, or losses (n,) of the given labels.
    """

    evidence: ClassVar[Evidence]
    classes_: NDArray[Any]
    confidence_: FloatArray  # (n,) probability that the given label is right, NaN where none was given
    label_distributions_: FloatArray | None  # (n, C) rows sum to 1; None where losses are all there is

    @property
    def neighborhood_(self) -> Neighborhood | None:
        """The neighbors and weights that the estimate used; None where none were."""

    def fit(self, X: Any, y: Any) -> Self: ...
