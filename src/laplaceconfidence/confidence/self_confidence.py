"""The probability that a model gives to the label."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator

from laplaceconfidence.confidence.given_labels import at_given_labels
from laplaceconfidence.confidence.probabilities import check_probabilities
from laplaceconfidence.confidence.protocol import Evidence


class SelfConfidence(BaseEstimator):
    """Confidence = the probability of the given label, p[y].

    The probabilities should come from a model that has not seen the label it judges: out-of-fold ones, say.

    Parameters
    ----------
    classes
        The class of every column, in order. ``None`` takes the distinct labels of ``y``, sorted; give it
        where a class has a column and no label.
    missing_label
        One more value of ``y`` that means "no label", besides ``None``, NaN and "".

    Attributes
    ----------
    confidence_ : (n,) array, NaN where the label is missing
    label_distributions_ : (n, C) array, the probabilities given
    classes_ : the class of every column
    """

    evidence: ClassVar[Evidence] = "probabilities"
    neighborhood_: ClassVar[None] = None

    def __init__(self, *, classes: Any = None, missing_label: Any = None) -> None:
        self.classes = classes
        self.missing_label = missing_label

    def fit(self, X: Any, y: Any) -> Self:
        """Read the class probabilities ``X`` (n, C) at the given labels ``y`` (n,)."""
        self.label_distributions_, given = check_probabilities(
            X, y, classes=self.classes, missing_label=self.missing_label
        )
        self.classes_ = given.class_values
        self.confidence_ = at_given_labels(self.label_distributions_, given.codes)
        return self
