"""VoteConfidence: how far the most frequent label of every sample can be trusted."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Self

import numpy as np

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.confidence.annotators.estimator import AnnotatorConfidence
from laplaceconfidence.confidence.inputs import at_given_labels
from laplaceconfidence.data.annotator_labels import AnnotatorLabels
from laplaceconfidence.data.labels import encode_labels


class VoteConfidence(AnnotatorConfidence):
    """``AnnotatorConfidence`` as an audit uses it: the given label of a sample is its most frequent one.

    Attributes
    ----------
    confidence_ : ndarray of shape (n,)
        Probability that the most frequent label is right, NaN where there is no label.
    single_confidence_ : ndarray of shape (L,)
        Probability that every single label is right.
    noise_rate_ : float
        Expected share of samples whose most frequent label is wrong; ``single_noise_rate_`` is that of all
        labels.
    noise_rate_bracket_ : tuple of float or None
        ``None`` where the noise is identified: the votes of several annotators are then not in doubt as a
        whole.
    """

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        knn_graph: Any = None,
        pred_probs: Any = None,
        audited: Any = None,
        audited_at_random: Collection[int] | None = None,
        **unsupported: Any,
    ) -> Self:
        """Fit the model of all annotators, and judge the most frequent labels by it.

        Parameters
        ----------
        X : array-like of shape (n, d) or None
            Feature vectors.
        y : array-like of shape (n, A), DataFrame or AnnotatorLabels
            The labels.
        knn_graph, pred_probs, audited, audited_at_random, **unsupported
            As in ``AnnotatorConfidence.fit``.

        Returns
        -------
        VoteConfidence
            The fitted estimator.
        """
        given = self._labels(y)
        super().fit(
            X,
            given,
            knn_graph=knn_graph,
            pred_probs=pred_probs,
            audited=audited,
            audited_at_random=audited_at_random,
            **unsupported,
        )
        votes = encode_labels(given.votes, classes=self.classes_).codes
        single_bracket = self.noise_rate_bracket_
        self.single_noise_rate_ = float(self.noise_rate_)
        self.single_confidence_ = self.confidence_[given.positions]
        if self._consensus is None:  # one annotator: every vote is a label
            self.confidence_, self.label_support_, self.cautious_confidence_ = (
                _by_sample(values[given.positions], given)
                for values in (self.confidence_, self.label_support_, self.cautious_confidence_)
            )
            return self
        support = self.label_support_[given.positions]
        is_vote = encode_labels(given.labels, classes=self.classes_).codes == votes[given.samples]
        self.confidence_ = at_given_labels(self.label_distributions_, votes)
        self.cautious_confidence_ = self.confidence_
        self.label_support_ = np.full(given.n_samples, np.nan)
        self.label_support_[given.samples[is_vote]] = support[is_vote]
        self.noise_rate_ = float(1 - np.nanmean(self.confidence_))
        self.noise_rate_bracket_ = None  # type: ignore[assignment]
        if not self.identifiable_:
            self.noise_rate_bracket_ = (
                min(self.noise_rate_, single_bracket[0]),
                max(self.noise_rate_, single_bracket[1]),
            )
        return self


def _by_sample(values: FloatArray, given: AnnotatorLabels) -> FloatArray:
    result = np.full(given.n_samples, np.nan)
    result[given.samples] = values
    return result
