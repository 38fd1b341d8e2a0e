"""The share of the votes of the nearest neighbors that the given label gets."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.confidence.inputs import (
    KNN_VOTE_BYTES,
    at_given_labels,
    check_feature_vectors,
    check_given_labels,
    check_memory,
    check_sample_weight,
    class_shares,
    unit_features,
)
from laplaceconfidence.confidence.protocol import EvidenceKind
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.graph.neighborhood import Neighborhood
from laplaceconfidence.graph.neighbors import Neighbors, find_neighbors, fitting_neighbor_count
from laplaceconfidence.validation import check_choice, must_be


class KNNVote(BaseEstimator):
    """Share of the votes of the nearest neighbors that the given label gets.

    Neighbors vote for their own given label [1]_. The sample itself has no vote, nor has a neighbor without a
    label or without positive cosine similarity. If no neighbor votes, the confidence is the share of the
    label among all given labels.

    Parameters
    ----------
    n_neighbors : int, default=50
        Number of neighbors per sample; lowered with a warning if there are fewer other samples.
    weights : {"similarity", "uniform"}, default="similarity"
        "similarity" weights a vote by the cosine similarity, "uniform" counts all votes equally.
    n_components : int or None, default=None
        Number of principal components in which neighbors are searched; ``None`` keeps the features.
    search : {"auto", "exact", "ivf"}, default="auto"
        The neighbor search; "ivf" is approximate and fast, "auto" uses it from 20,000 samples on.
    missing_label : object, default=None
        A value of ``y`` that means "no label", besides ``None``, NaN and the empty string.
    n_jobs : int or None, default=None
        Number of threads; ``None`` and -1 use all cores.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the approximate search; an exact search does not use it.

    Attributes
    ----------
    confidence_ : ndarray of shape (n,)
        Probability that the given label is right, NaN where none was given.
    label_distributions_ : ndarray of shape (n, C)
        Share of the votes per class; rows sum to 1.
    classes_ : ndarray of shape (C,)
        The distinct labels, sorted.
    neighborhood_ : Neighborhood
        The neighbors and the weights of their votes.
    n_neighbors_ : int
        Number of neighbors that was used.
    search_ : str
        The neighbor search that was used.
    recall_ : float or None
        Share of the true neighbors that the search found.
    n_features_in_ : int
        Number of features.

    References
    ----------
    .. [1] Cover, Hart, "Nearest Neighbor Pattern Classification", IEEE Transactions on Information Theory,
       1967.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from laplaceconfidence import KNNVote
    >>> X, y = load_digits(return_X_y=True)
    >>> y[0] = 7  # a wrong label
    >>> KNNVote().fit(X, y).confidence_[0]
    np.float64(0.0)
    """

    evidence: ClassVar[EvidenceKind] = "features"

    def __init__(
        self,
        n_neighbors: int = 50,
        weights: str = "similarity",
        *,
        n_components: int | None = None,
        search: str = "auto",
        missing_label: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.n_components = n_components
        self.search = search
        self.missing_label = missing_label
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, sample_weight: Any = None) -> Self:
        """Compute the votes of the neighbors of every sample.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Feature vectors.
        y : array-like of shape (n,)
            Given labels.
        sample_weight : array-like of shape (n,) or None, default=None
            Factor of the vote of each sample. A neighbor of weight 0 does not vote, but still takes one of
            the ``n_neighbors`` places.

        Returns
        -------
        KNNVote
            The fitted estimator.
        """
        check_choice(self.weights, "weights", ("similarity", "uniform"))
        features = check_feature_vectors(self, X)
        given = check_given_labels(y, len(features), missing_label=self.missing_label)
        check_memory(self, len(features), len(given.class_values), per_probability=KNN_VOTE_BYTES)
        factors = check_sample_weight(sample_weight, len(features))
        if factors is not None and factors[given.codes != MISSING].sum() == 0:
            raise must_be("sample_weight", "positive for at least one labeled sample", 0.0)
        self.n_neighbors_ = fitting_neighbor_count(self.n_neighbors, len(features))
        neighbors = find_neighbors(
            unit_features(features, self.n_components),
            self.n_neighbors_,
            search=self.search,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )
        may_vote = voting_neighbors(neighbors, given.codes != MISSING)
        votes = np.where(may_vote, neighbors.similarities if self.weights == "similarity" else 1.0, 0.0)
        if factors is not None:
            votes = votes * factors[neighbors.indices]
        self.search_, self.recall_ = neighbors.search, neighbors.recall
        self.neighborhood_ = Neighborhood.of_votes(neighbors, votes)
        self.classes_ = given.class_values
        counts = vote_counts(neighbors.indices, votes, given.codes, len(given.class_values))
        self.label_distributions_ = to_shares(counts, given.codes, factors)
        self.confidence_ = at_given_labels(self.label_distributions_, given.codes)
        return self


def voting_neighbors(neighbors: Neighbors, may_vote: BoolArray) -> BoolArray:
    """Find the neighbors that vote: those that may, and that have positive similarity to the sample.

    The second rule excludes the arbitrary neighbors of a zero vector.

    Parameters
    ----------
    neighbors : Neighbors
        k neighbors per sample.
    may_vote : ndarray of shape (n,)
        Whether each sample may vote.

    Returns
    -------
    ndarray of shape (n, k)
    """
    mask: BoolArray = may_vote[neighbors.indices] & (neighbors.similarities > 0)
    return mask


def vote_counts(indices: IntArray, weights: FloatArray, codes: IntArray, n_classes: int) -> FloatArray:
    """Sum the weights of every sample's neighbors per label.

    Parameters
    ----------
    indices : ndarray of shape (n, k)
        Neighbors of every sample.
    weights : ndarray of shape (n, k)
        Weights of their votes; must be 0 for neighbors without a label.
    codes : ndarray of shape (n,)
        Codes of the given labels.
    n_classes : int
        Number of classes.

    Returns
    -------
    ndarray of shape (n, n_classes)
    """
    n = len(indices)
    labels = np.maximum(codes[indices], 0)
    cells = (labels + np.arange(n)[:, None] * n_classes).ravel()
    counts = np.bincount(cells, weights=weights.ravel(), minlength=n * n_classes)
    return np.asarray(counts, dtype=np.float64).reshape(n, n_classes)


def to_shares(counts: FloatArray, codes: IntArray, weights: FloatArray | None = None) -> FloatArray:
    """Divide rows of counts by their sums, in place; rows of zeros become the shares of all given labels.

    Parameters
    ----------
    counts : ndarray of shape (n, C)
        Votes per class.
    codes : ndarray of shape (n,)
        Codes of the given labels.
    weights : ndarray of shape (n,) or None, default=None
        Weights of the samples in the shares of all given labels.

    Returns
    -------
    ndarray of shape (n, C)
        ``counts`` itself.
    """
    total = counts.sum(axis=1, keepdims=True)
    counts[total[:, 0] <= 0] = class_shares(codes, counts.shape[1], weights)
    np.divide(counts, total, out=counts, where=total > 0)
    return counts
