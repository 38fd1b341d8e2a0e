"""The paper's alternative: given against refined label, as a loss for the Gaussian mixture."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from laplaceconfidence.confidence.laplace import LaplaceConfidence
from laplaceconfidence.confidence.loss_mixture import GaussianLossMixture
from laplaceconfidence.confidence.protocol import Evidence
from laplaceconfidence.graph.neighborhood import Neighborhood


class RefinedCrossEntropy(BaseEstimator):
    """Gaussian mixture of the cross-entropies between the given labels and those the graph refined.

    ``LaplaceConfidence`` gives every sample a distribution over the classes; the cross-entropy of the given
    label against it is small where the graph agrees. The posterior of the lower of two Gaussians fitted to
    these losses is the confidence.

    Parameters
    ----------
    mixture
        A ``GaussianLossMixture`` with other settings than DivideMix's; it is not changed.
    n_neighbors, alpha, ... , random_state
        Those of ``LaplaceConfidence``; ``random_state`` also seeds a mixture that has no seed of its own.

    Attributes
    ----------
    confidence_ : (n,) array, NaN where the label is missing
    label_distributions_ : (n, C) array, the refined labels
    classes_ : the distinct labels, sorted
    laplace_, mixture_ : the two estimators, fitted
    """

    evidence: ClassVar[Evidence] = "features"

    def __init__(
        self,
        n_neighbors: int = 50,
        alpha: float = 0.99,
        *,
        mixture: GaussianLossMixture | None = None,
        n_components: int | None = None,
        search: str = "auto",
        target_recall: float = 0.95,
        tol: float = 1e-3,
        max_iter: int = 30,
        dtype: str = "auto",
        knn_graph_kind: str = "similarity",
        missing_label: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.mixture = mixture
        self.n_components = n_components
        self.search = search
        self.target_recall = target_recall
        self.tol = tol
        self.max_iter = max_iter
        self.dtype = dtype
        self.knn_graph_kind = knn_graph_kind
        self.missing_label = missing_label
        self.n_jobs = n_jobs
        self.random_state = random_state

    @property
    def neighborhood_(self) -> Neighborhood:
        """The neighbors and weights of the graph that the labels were refined on."""
        return self.laplace_.neighborhood_

    def fit(self, X: Any, y: Any, *, knn_graph: Any = None, sample_weight: Any = None) -> Self:
        """Refine the given labels ``y`` (n,) on the graph, then fit the mixture; arguments as of
        ``LaplaceConfidence.fit``.
        """
        settings = self.get_params(deep=False)
        mixture = settings.pop("mixture")
        self.laplace_ = LaplaceConfidence(**settings).fit(
            X, y, knn_graph=knn_graph, sample_weight=sample_weight
        )
        self.mixture_ = GaussianLossMixture() if mixture is None else clone(mixture)
        if self.mixture_.random_state is None:
            self.mixture_.set_params(random_state=self.random_state)

        refined = np.asarray(self.laplace_.confidence_, dtype=np.float64)
        labeled = ~np.isnan(refined)
        losses = -np.log(np.maximum(refined[labeled], np.finfo(np.float64).tiny))
        self.mixture_.fit(losses, np.zeros(len(losses), dtype=np.int64))
        self.classes_ = self.laplace_.classes_
        self.label_distributions_ = self.laplace_.label_distributions_
        self.confidence_ = np.full(len(refined), np.nan)
        self.confidence_[labeled] = self.mixture_.confidence_
        if X is not None:
            self.n_features_in_ = self.laplace_.n_features_in_
        return self
