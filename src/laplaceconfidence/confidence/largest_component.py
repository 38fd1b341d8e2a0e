"""Which labels are right, from how each class hangs together: TopoFilter."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.confidence.feature_vectors import check_feature_vectors, unit_features
from laplaceconfidence.confidence.given_labels import check_given_labels
from laplaceconfidence.confidence.neighbor_votes import to_shares, vote_counts, voting_neighbors
from laplaceconfidence.confidence.protocol import Evidence
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.graph.neighborhood import Neighborhood
from laplaceconfidence.graph.neighbors import Neighbors, find_neighbors, fitting_neighbor_count
from laplaceconfidence.validation import check_integer, check_real


class LargestComponent(BaseEstimator):
    """Confidence 1 for the core of every class and 0 for the rest, after TopoFilter (Wu et al., 2020).

    In the graph of nearest neighbors, the edges between samples of the same label are kept; the largest
    connected component of each class is collected. Of what was collected, a sample stays if its own label
    is the most frequent one among its nearest neighbors *within the collection*, with a share of at least
    ``zeta``. That is one round of TopoFilter; the original repeats it while a network trains.

    Neighbors are nearest by cosine similarity, as for all estimators here; an edge needs one of its ends
    to see the other. Components of equal size are all collected, so that the order of the samples decides
    nothing. Samples without label belong to no class.

    Parameters
    ----------
    n_neighbors
        Neighbors in the graph whose components are taken; larger ones suit more noise.
    n_outlier_neighbors
        Neighbors within the collection that are asked whether a sample stays; all others where there are
        not that many.
    zeta
        Least share of those neighbors that has to agree; ``None`` leaves the collection as it is.
    n_components
        Number of principal components to search in; ``None`` takes the features as they are.
    search
        "exact", "ivf" (approximate) or "auto": IVF from 20,000 samples on.
    n_jobs
        Threads; ``None`` and -1 take every core.
    random_state
        Seed of the approximate search.
    missing_label
        One more value of ``y`` that means "no label", besides ``None``, NaN and "".

    Attributes
    ----------
    confidence_ : (n,) array of 1 and 0, NaN where the label is missing
    label_distributions_ : (n, C) array, shares of the labels of the kept ones among the
        ``n_outlier_neighbors`` nearest of all samples; where none of them was kept, of all that have a label
    classes_ : the distinct labels, sorted
    neighborhood_ : the neighbors, those that the distributions count with weight 1
    n_neighbors_, search_, recall_ : what the search on all samples really used and reached
    """

    evidence: ClassVar[Evidence] = "features"

    def __init__(
        self,
        n_neighbors: int = 4,
        *,
        n_outlier_neighbors: int = 32,
        zeta: float | None = 0.5,
        n_components: int | None = None,
        search: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        missing_label: Any = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.n_outlier_neighbors = n_outlier_neighbors
        self.zeta = zeta
        self.n_components = n_components
        self.search = search
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.missing_label = missing_label

    def fit(self, X: Any, y: Any) -> Self:
        """Collect the cores of the classes given by ``y`` (n,) in the features ``X`` (n, d)."""
        n_outlier_neighbors = check_integer(self.n_outlier_neighbors, "n_outlier_neighbors", minimum=1)
        zeta = None if self.zeta is None else check_real(self.zeta, "zeta", at_least=0, at_most=1)
        features = check_feature_vectors(self, X)
        given = check_given_labels(y, len(features), missing_label=self.missing_label)
        codes, n_classes = given.codes, len(given.class_values)
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
    """Mask of the samples in the largest component of their class; edges have no direction."""
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
    """Mask of the samples whose own label leads among their neighbors, with a share of at least ``zeta``."""
    votes = voting_neighbors(neighbors, codes != MISSING).astype(np.float64)
    counts = vote_counts(neighbors.indices, votes, codes, n_classes)
    own = counts[np.arange(len(codes)), codes]
    mask: BoolArray = (own == counts.max(axis=1)) & (own >= zeta * neighbors.indices.shape[1])
    return mask


def _edges(neighbors: Neighbors, n_neighbors: int) -> tuple[IntArray, IntArray]:
    seen = neighbors.similarities[:, :n_neighbors] > 0
    starts, places = np.nonzero(seen)
    return starts, neighbors.indices[starts, places]


def _votes_of_kept(neighbors: Neighbors, n_nearest: int, kept: BoolArray, codes: IntArray) -> FloatArray:
    """(n, k) 1 for the nearest neighbors that were kept, or for all labeled ones where none was; else 0."""
    nearest = np.arange(neighbors.indices.shape[1]) < n_nearest
    by_kept = voting_neighbors(neighbors, kept) & nearest
    by_all = voting_neighbors(neighbors, codes != MISSING) & nearest
    return np.where(by_kept.any(axis=1, keepdims=True), by_kept, by_all).astype(np.float64)
