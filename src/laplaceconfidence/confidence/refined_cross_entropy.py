"""Cross-entropy of the given against the refined labels, as the loss of a Gaussian mixture."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from laplaceconfidence.confidence.laplace import LaplaceConfidence
from laplaceconfidence.confidence.loss_mixture import GaussianLossMixture
from laplaceconfidence.confidence.protocol import EvidenceKind
from laplaceconfidence.graph.neighborhood import Neighborhood


class RefinedCrossEntropy(BaseEstimator):
    """Gaussian mixture of the cross-entropies between the given labels and those refined by the graph.

    ``LaplaceConfidence`` gives every sample a distribution over the classes; the cross-entropy of the given
    label against it is small where the graph agrees. The confidence is the posterior of the lower of two
    Gaussians fitted to these losses. The paper of ``LaplaceConfidence`` describes it as an alternative [1]_.

    Parameters
    ----------
    n_neighbors : int or "auto", default=50
        Number of neighbors per sample in the graph; lowered with a warning if there are fewer other samples.
        "auto" chooses the number under which held-out given labels are most likely.
    alpha : float or "auto", default=0.99
        How far labels are propagated, in (0, 1); the paper's mu is 1/alpha - 1. "auto" chooses as for
        ``n_neighbors``.
    mixture : GaussianLossMixture or None, default=None
        A mixture with other settings than the default ones; it is copied, not changed.
    n_components : int or None, default=None
        Number of principal components to keep before the graph is built; ``None`` keeps the features.
    search : {"auto", "exact", "ivf"}, default="auto"
        The neighbor search; "ivf" is approximate and fast, "auto" uses it from 20,000 samples on.
    target_recall : float, default=0.95
        Share of the true neighbors that an approximate search must find, measured on a sample.
    tol : float, default=1e-3
        Relative residual at which the conjugate gradients stop.
    max_iter : int, default=30
        Largest number of conjugate gradient iterations.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of the graph and the solution; "auto" is float64 up to 5,000 samples and float32 above.
    knn_graph_kind : {"similarity", "cosine_distance", "distance"}, default="similarity"
        What the values of a ``knn_graph`` passed to ``fit`` are.
    missing_label : object, default=None
        A value of ``y`` that means "no label", besides ``None``, NaN and the empty string.
    n_jobs : int or None, default=None
        Number of threads; ``None`` and -1 use all cores.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the approximate search, of the folds for "auto", and of a mixture that has no seed of its own.

    Attributes
    ----------
    confidence_ : ndarray of shape (n,)
        Probability that the given label is right, NaN where none was given.
    label_distributions_ : ndarray of shape (n, C)
        The refined labels: ``label_distributions_`` of ``laplace_``.
    classes_ : ndarray of shape (C,)
        The distinct labels, sorted.
    neighborhood_ : Neighborhood
        The neighbors of every sample in the graph and their weights.
    laplace_ : LaplaceConfidence
        The fitted graph estimator.
    mixture_ : GaussianLossMixture
        The fitted mixture.
    n_features_in_ : int
        Number of features; not set if a graph replaced them.

    References
    ----------
    .. [1] Chen et al., "LaplaceConfidence: a Graph-based Approach for Learning with Noisy Labels".

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from laplaceconfidence import RefinedCrossEntropy
    >>> X, y = load_digits(return_X_y=True)
    >>> y[0] = 7  # a wrong label
    >>> RefinedCrossEntropy(random_state=0).fit(X, y).confidence_[0] < 0.5
    np.True_
    """

    evidence: ClassVar[EvidenceKind] = "features"

    def __init__(
        self,
        n_neighbors: int | str = 50,
        alpha: float | str = 0.99,
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
        """The neighbors of every sample and their weights in the graph."""
        return self.laplace_.neighborhood_

    def fit(self, X: Any, y: Any, *, knn_graph: Any = None, sample_weight: Any = None) -> Self:
        """Refine the given labels on the graph, then fit the mixture.

        Parameters
        ----------
        X : array-like of shape (n, d) or None
            Feature vectors; may be ``None`` if a ``knn_graph`` is passed.
        y : array-like of shape (n,)
            Given labels of at least two classes.
        knn_graph : sparse matrix of shape (n, n) or None, default=None
            A graph of neighbors that replaces the one made from ``X``.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the samples in the graph, as in ``LaplaceConfidence``; the mixture counts every labeled
            sample once.

        Returns
        -------
        RefinedCrossEntropy
            The fitted estimator.
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
