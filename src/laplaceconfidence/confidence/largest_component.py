"""The largest connected component of every class in the neighbor graph: TopoFilter."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.confidence.inputs import (
    check_feature_vectors,
    check_given_labels,
    check_memory,
    refuse_sample_weight,
    unit_features,
)
from laplaceconfidence.confidence.knn_vote import to_shares, vote_counts, voting_neighbors
from laplaceconfidence.confidence.protocol import EvidenceKind
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.graph.neighborhood import Neighborhood
from laplaceconfidence.graph.neighbors import Neighbors, find_neighbors, fitting_neighbor_count
from laplaceconfidence.validation import check_integer, check_real


class LargestComponent(BaseEstimator):
    """Confidence 1 for the largest connected component of every class, 0 for other samples (TopoFilter).

    In the graph of nearest neighbors, only edges between samples with the same label are kept, and the
    largest connected component of each class is selected. A selected sample stays if its label is the most
    frequent one among its nearest neighbors within the selection, with a share of at least ``zeta``. This is
    one iteration of TopoFilter [1]_; the original repeats it while a network trains.

    Neighbors are nearest by cosine similarity, and an edge exists if either end is among the neighbors of the
    other. Components of equal size are all selected, so that the order of the samples does not matter.
    Samples without a label belong to no class.

    Parameters
    ----------
    n_neighbors : int, default=4
        Number of neighbors per sample in the graph of the components; larger numbers suit more noise.
    n_outlier_neighbors : int, default=32
        Number of neighbors within the selection that decide whether a sample stays; all others if there are
        fewer.
    zeta : float or None, default=0.5
        Smallest share of those neighbors that must have the same label; ``None`` keeps the whole selection.
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
        1 for the samples that stay and 0 for the others, NaN where no label was given.
    label_distributions_ : ndarray of shape (n, C)
        Shares of the labels among those of the ``n_outlier_neighbors`` nearest samples that stay; if none of
        them does, among all of them that have a label.
    classes_ : ndarray of shape (C,)
        The distinct labels, sorted.
    neighborhood_ : Neighborhood
        The neighbors; those that count in ``label_distributions_`` have weight 1, the others 0.
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
    .. [1] Wu, Zheng, Goswami, Metaxas, Chen, "A Topological Filter for Learning with Label Noise", NeurIPS
       2020.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from laplaceconfidence import LargestComponent
    >>> X, y = load_digits(return_X_y=True)
    >>> y[0] = 7  # a wrong label
    >>> LargestComponent().fit(X, y).confidence_[:5]
    array([0., 1., 0., 1., 1.])
    """

    evidence: ClassVar[EvidenceKind] = "features"

    def __init__(
        self,
        n_neighbors: int = 4,
        *,
        n_outlier_neighbors: int = 32,
        zeta: float | None = 0.5,
        n_components: int | None = None,
        search: str = "auto",
        missing_label: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.n_outlier_neighbors = n_outlier_neighbors
        self.zeta = zeta
        self.n_components = n_components
        self.search = search
        self.missing_label = missing_label
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, sample_weight: None = None) -> Self:
        """Select the largest components of the classes.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Feature vectors.
        y : array-like of shape (n,)
            Given labels.
        sample_weight : None
            Not supported: other values raise ``InvalidInputError``.

        Returns
        -------
        LargestComponent
            The fitted estimator.
        """
        refuse_sample_weight(self, sample_weight, "the components of a graph have no weights")
        n_outlier_neighbors = check_integer(self.n_outlier_neighbors, "n_outlier_neighbors", minimum=1)
        zeta = None if self.zeta is None else check_real(self.zeta, "zeta", at_least=0, at_most=1)
        features = check_feature_vectors(self, X)
        given = check_given_labels(y, len(features), missing_label=self.missing_label)
        codes, n_classes = given.codes, len(given.class_values)
        check_memory(self, len(features), n_classes, per_probability=10)
        self.n_neighbors_ = fitting_neighbor_count(self.n_neighbors, len(features))
        points = unit_features(features, self.n_components)

        neighbors = self._neighbors(points, max(self.n_neighbors_, n_outlier_neighbors))
        kept = largest_components(*_edges(neighbors, self.n_neighbors_), codes)
        if zeta is not None and kept.sum() > 1:
            among = self._neighbors(points[kept], n_outlier_neighbors)
            kept[kept] = agree_with_neighbors(among, codes[kept], n_classes, zeta)

        self.search_, self.recall_ = neighbors.search, neighbors.recall
        self.classes_ = given.class_values
        self.confidence_ = np.where(codes == MISSING, np.nan, kept.astype(np.float64))
        votes = _votes_of_kept(neighbors, n_outlier_neighbors, kept, codes)
        self.neighborhood_ = Neighborhood.of_votes(neighbors, votes)
        self.label_distributions_ = to_shares(vote_counts(neighbors.indices, votes, codes, n_classes), codes)
        return self

    def _neighbors(self, points: FloatArray, n_neighbors: int) -> Neighbors:
        return find_neighbors(
            points,
            min(n_neighbors, len(points) - 1),
            search=self.search,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )


def largest_components(starts: IntArray, ends: IntArray, codes: IntArray) -> BoolArray:
    """Find the samples in the largest component of their class.

    Parameters
    ----------
    starts, ends : ndarray of shape (n_edges,)
        Samples that the undirected edges connect.
    codes : ndarray of shape (n,)
        Codes of the given labels.

    Returns
    -------
    ndarray of shape (n,)
    """
    labeled = codes != MISSING
    within = (codes[starts] == codes[ends]) & labeled[starts]
    edges = (np.ones(int(within.sum())), (starts[within], ends[within]))
    graph = sparse.coo_array(edges, shape=(len(codes), len(codes)))
    component = sparse.csgraph.connected_components(graph, directed=False)[1]
    size = np.bincount(component)[component]
    largest = np.zeros(codes.max() + 1, dtype=np.int64)
    np.maximum.at(largest, codes[labeled], size[labeled])
    mask: BoolArray = labeled & (size == largest[codes])
    return mask


def agree_with_neighbors(neighbors: Neighbors, codes: IntArray, n_classes: int, zeta: float) -> BoolArray:
    """Find the samples whose label is the most frequent among their neighbors, and frequent enough.

    Parameters
    ----------
    neighbors : Neighbors
        k neighbors per sample.
    codes : ndarray of shape (n,)
        Codes of the given labels.
    n_classes : int
        Number of classes.
    zeta : float
        Smallest share of the k neighbors that must have the label.

    Returns
    -------
    ndarray of shape (n,)
    """
    votes = voting_neighbors(neighbors, codes != MISSING).astype(np.float64)
    counts = vote_counts(neighbors.indices, votes, codes, n_classes)
    own = counts[np.arange(len(codes)), codes]
    mask: BoolArray = (own == counts.max(axis=1)) & (own >= zeta * neighbors.indices.shape[1])
    return mask


def _edges(neighbors: Neighbors, n_neighbors: int) -> tuple[IntArray, IntArray]:
    similar = neighbors.similarities[:, :n_neighbors] > 0
    starts, places = np.nonzero(similar)
    return starts, neighbors.indices[starts, places]


def _votes_of_kept(neighbors: Neighbors, n_nearest: int, kept: BoolArray, codes: IntArray) -> FloatArray:
    """Votes (n, k): 1 for the nearest neighbors that were kept, or all labeled ones if none was; else 0."""
    nearest = np.arange(neighbors.indices.shape[1]) < n_nearest
    by_kept = voting_neighbors(neighbors, kept) & nearest
    by_all = voting_neighbors(neighbors, codes != MISSING) & nearest
    return np.where(by_kept.any(axis=1, keepdims=True), by_kept, by_all).astype(np.float64)
