"""How far a model prefers the label to its strongest rival."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from laplaceconfidence.confidence.given_labels import at_given_labels
from laplaceconfidence.confidence.probabilities import check_probabilities
from laplaceconfidence.confidence.protocol import Evidence


class NormalizedMargin(BaseEstimator):
    """Confidence = (p[y] - max over the other classes of p + 1) / 2, which lies in [0, 1].

    It is 0.5 where the label and its strongest rival are equally likely, and 1 where there is one class only.
    The ranking is cleanlab's "normalized margin" (Northcutt et al., 2021). The probabilities should
    come from a model that has not seen the label it judges: out-of-fold ones, say.

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
        """Compare the class probabilities ``X`` (n, C) at the given labels ``y`` (n,) with the others."""
        self.label_distributions_, given = check_probabilities(
            X, y, classes=self.classes, missing_label=self.missing_label
        )
        self.classes_ = given.class_values
        rivals = self.label_distributions_.copy()
        rivals[np.arange(len(rivals)), np.maximum(given.codes, 0)] = 0
        own = at_given_labels(self.label_distributions_, given.codes)
        self.confidence_ = (own - rivals.max(axis=1) + 1) / 2
        return self
