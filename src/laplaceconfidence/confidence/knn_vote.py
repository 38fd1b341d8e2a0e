"""The share of the neighbors that carry the same label."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from laplaceconfidence.confidence.feature_vectors import check_feature_vectors, unit_features
from laplaceconfidence.confidence.given_labels import at_given_labels, check_given_labels
from laplaceconfidence.confidence.neighbor_votes import to_shares, vote_counts, voting_neighbors
from laplaceconfidence.confidence.protocol import Evidence
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.graph.neighborhood import Neighborhood
from laplaceconfidence.graph.neighbors import find_neighbors, fitting_neighbor_count
from laplaceconfidence.validation import check_choice


class KNNVote(BaseEstimator):
    """Confidence = the share of the nearest neighbors' votes that goes to the given label.

    The sample itself has no vote, nor has a neighbor without label or without positive cosine similarity.
    Where nobody votes, the shares of all given labels stand in.

    Parameters
    ----------
    n_neighbors
        How many nearest neighbors are asked; lowered, with a warning, if there are not that many.
    weights
        "similarity" weighs a vote by the cosine similarity, "uniform" counts every vote alike.
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
    confidence_ : (n,) array, NaN where the label is missing
    label_distributions_ : (n, C) array, the shares of the votes
    classes_ : the distinct labels, sorted
    neighborhood_ : the neighbors and the weights of their votes
    n_neighbors_, search_, recall_ : what the neighbor search really used and reached
    """

    evidence: ClassVar[Evidence] = "features"

    def __init__(
        self,
        n_neighbors: int = 50,
        weights: str = "similarity",
        *,
        n_components: int | None = None,
        search: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        missing_label: Any = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.n_components = n_components
        self.search = search
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.missing_label = missing_label

    def fit(self, X: Any, y: Any) -> Self:
        """Let the neighbors in the features ``X`` (n, d) vote on the given labels ``y`` (n,)."""
        check_choice(self.weights, "weights", ("similarity", "uniform"))
        features = check_feature_vectors(self, X)
        given = check_given_labels(y, len(features), missing_label=self.missing_label)
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
        self.search_, self.recall_ = neighbors.search, neighbors.recall
        self.neighborhood_ = Neighborhood.of_votes(neighbors, votes)
        self.classes_ = given.class_values
        counts = vote_counts(neighbors.indices, votes, given.codes, len(given.class_values))
        self.label_distributions_ = to_shares(counts, given.codes)
        self.confidence_ = at_given_labels(self.label_distributions_, given.codes)
        return self
