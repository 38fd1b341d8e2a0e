"""LaplaceConfidence: propagation of the given labels over a graph of the samples."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from laplaceconfidence.arrays import FloatArray, IntArray, row_blocks
from laplaceconfidence.confidence.inputs import (
    at_given_labels,
    check_contrasting_labels,
    check_feature_vectors,
    check_memory,
    check_sample_weight,
    has_equal_rows,
)
from laplaceconfidence.confidence.protocol import EvidenceKind
from laplaceconfidence.confidence.settings_search import (
    PAPER_NEIGHBORS,
    fitting_counts,
    settle_settings,
)
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.features.scale import principal_axes, project, unit_length
from laplaceconfidence.graph.affinity import (
    GRAPH_KINDS,
    affinity_from_knn_graph,
    by_sample,
    degrees,
    in_order,
    normalized,
    normalized_graph,
    symmetric_affinity,
)
from laplaceconfidence.graph.neighborhood import Neighborhood
from laplaceconfidence.graph.neighbors import (
    SEARCHES,
    find_neighbors,
    fitting_neighbor_count,
    nearest_among,
)
from laplaceconfidence.solve.propagation import clipped_softmax, propagate_labels
from laplaceconfidence.stages import StageTimer, observing, stage
from laplaceconfidence.validation import (
    check_choice,
    check_integer,
    check_real,
    check_same_length,
    must_be,
)

FLOAT64_UP_TO = 5_000  # samples; "auto" precision: up to here float64 costs no noticeable time


class LaplaceConfidence(ClassifierMixin, BaseEstimator):
    """Probability that each given label is right, from the minimum of a graph's Laplacian energy.

    A graph connects every sample to its ``n_neighbors`` most similar ones. The given labels are propagated
    over it to the solution that differs least between neighbors while staying close to the given labels. The
    confidence of a label is its probability under that solution [1]_.

    Parameters
    ----------
    n_neighbors : int or "auto", default=50
        Number of neighbors per sample in the graph; lowered with a warning if there are fewer other samples.
        "auto" chooses the number under which held-out given labels are most likely.
    alpha : float or "auto", default=0.99
        How far labels are propagated, in (0, 1); the paper's mu is 1/alpha - 1. "auto" chooses as for
        ``n_neighbors``.
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
        Seed of the approximate search and of the folds for "auto"; not used by an exact search with fixed
        settings.

    Attributes
    ----------
    confidence_ : ndarray of shape (n,)
        Probability that the given label is right, NaN where none was given.
    label_distributions_ : ndarray of shape (n, C)
        Probability of every class for every sample; rows sum to 1.
    transduction_ : ndarray of shape (n,)
        The most probable class of every sample.
    classes_ : ndarray of shape (C,)
        The classes, in the order of the columns.
    neighborhood_ : Neighborhood
        The neighbors of every sample in the graph and their weights.
    affinity_ : scipy.sparse.csr_array of shape (n, n)
        The symmetric graph.
    n_iter_ : int
        Largest number of iterations of any class.
    residual_ : float
        Largest true relative residual of any class.
    class_residuals_ : ndarray of shape (C,)
        True relative residual per class.
    converged_ : bool
        Whether every class reached ``tol``.
    energy_ : EnergyChange
        Laplacian energy of the given labels and of the solution, ``(given, solution)``.
    n_neighbors_ : int or None
        Number of neighbors that was used; ``None`` for a graph that was passed in.
    alpha_ : float
        The alpha that was used.
    settings_ : list of dict
        The candidates for "auto", best first, each with the mean log-likelihood of the held-out labels and
        the number of folds it was evaluated on; empty if nothing was chosen.
    search_ : str or None
        The neighbor search that was used; ``None`` for a graph that was passed in.
    recall_ : float or None
        Share of the true neighbors that the search found; ``None`` for a graph that was passed in.
    timings_ : dict of str to float
        Seconds per stage.
    n_features_in_ : int
        Number of features; not set if a graph replaced them.

    References
    ----------
    .. [1] Chen et al., "LaplaceConfidence: a Graph-based Approach for Learning with Noisy Labels".

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from laplaceconfidence import LaplaceConfidence
    >>> X, y = load_digits(return_X_y=True)
    >>> y[0] = 7  # a wrong label
    >>> LaplaceConfidence().fit(X, y).confidence_.argmin()
    np.int64(0)
    """

    evidence: ClassVar[EvidenceKind] = "features"

    def __init__(
        self,
        n_neighbors: int | str = 50,
        alpha: float | str = 0.99,
        *,
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

    def fit(self, X: Any, y: Any, *, knn_graph: Any = None, sample_weight: Any = None) -> Self:
        """Estimate the confidence of every label of ``y``.

        Parameters
        ----------
        X : array-like of shape (n, d) or None
            Feature vectors; may be ``None`` if a ``knn_graph`` is passed.
        y : array-like of shape (n,)
            Given labels of at least two classes.
        knn_graph : sparse matrix of shape (n, n) or None, default=None
            A graph of neighbors that replaces the one made from ``X``, symmetric or not, with values as
            ``knn_graph_kind`` says.
        sample_weight : array-like of shape (n,) or None, default=None
            A sample of weight w counts as w copies of itself. The label of a sample of weight 0 gets a
            confidence, but has no influence on other samples.

        Returns
        -------
        LaplaceConfidence
            The fitted estimator.
        """
        self._check_settings()
        timer = StageTimer()
        with observing(timer):
            unit = None if X is None else self._prepared_features(X, reset=True)
            labels = check_contrasting_labels(y, self.missing_label)
            n = len(labels.codes)
            if unit is not None:
                check_same_length("X", len(unit), "y", n)
            check_memory(self, n, len(labels.class_values), per_probability=self._bytes_per_probability(n))
            weights = check_sample_weight(sample_weight, n)
            used_codes = labels.codes if weights is None else np.where(weights > 0, labels.codes, MISSING)
            affinity, order = self._build_graph(unit, knn_graph, used_codes, len(labels.class_values))
            result = propagate_labels(
                affinity,
                labels.codes,
                len(labels.class_values),
                alpha=self.alpha_,
                tol=self.tol,
                max_iter=self.max_iter,
                node_weights=weights,
                self_similarity=None if weights is None else _self_similarity(unit, affinity),
                order=order,
                n_jobs=self.n_jobs,
            )
            with stage("confidence"):
                self.label_distributions_ = clipped_softmax(result.solution)
                self.confidence_ = at_given_labels(self.label_distributions_, labels.codes)
        self.classes_ = labels.class_values
        self.transduction_ = self.classes_[self.label_distributions_.argmax(axis=1)]
        self._affinity = in_order(affinity, order)
        self.n_iter_ = max(1, int(result.n_iterations.max()))
        self.class_residuals_ = result.residuals
        self.residual_ = result.residuals.max()
        self.converged_ = result.converged
        self.energy_ = result.energy
        self.timings_ = timer.seconds
        self._unit_features = unit
        self._node_weights = np.ones(n) if weights is None else weights
        # The factor of every node in the sums over its neighbors, besides the weight of the edge.
        self._outgoing = self._node_weights / np.sqrt(result.degree)  # (n,)
        self._message = result.solution * self._outgoing[:, None].astype(affinity.dtype)
        if not self.converged_:
            warnings.warn(
                f"The conjugate gradients stopped after max_iter={self.max_iter} iterations at a relative "
                f"residual of {self.residual_:.2g}, above tol={self.tol:g}. The ranking of the samples "
                "rarely changes in further iterations; raise 'max_iter' for more precise confidences.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    @property
    def affinity_(self) -> sparse.csr_array:
        """The symmetric graph, with the samples as nodes."""
        self._affinity = by_sample(self._affinity)
        return self._affinity

    @property
    def neighborhood_(self) -> Neighborhood:
        """The neighbors of every sample and their weights in the graph, sample weights included."""
        if (self._node_weights == 1).all():
            return Neighborhood.of_graph(self.affinity_)
        weights = sparse.csr_array(self.affinity_, copy=True)
        weights.data *= self._outgoing[weights.indices].astype(weights.dtype)
        return Neighborhood(self.affinity_, weights)

    def predict_proba(self, X: Any) -> FloatArray:
        """Predict the class probabilities of new samples, each added to the graph as a node without a label.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Feature vectors.

        Returns
        -------
        ndarray of shape (m, C)
            Rows sum to 1.
        """
        check_is_fitted(self)
        if self._unit_features is None:
            raise InvalidInputError(
                "This estimator was fitted on a 'knn_graph' without features, so new samples cannot be "
                "compared with the fitted ones. Pass 'X' to fit, too."
            )
        queries = self._prepared_features(X, reset=False)
        nearest, similarities = nearest_among(
            queries, self._unit_features, self._n_new_neighbors, n_jobs=self.n_jobs
        )
        weights = np.maximum(similarities, 0).astype(self._message.dtype)  # (m, k)
        degree = (weights * self._node_weights[nearest]).sum(axis=1)
        degree[degree <= 0] = 1.0
        solution = np.empty((len(queries), len(self.classes_)), dtype=self._message.dtype)
        for rows in row_blocks(len(queries), 1024):
            solution[rows] = np.einsum("mk,mkc->mc", weights[rows], self._message[nearest[rows]])
        solution *= (self.alpha_ / np.sqrt(degree))[:, None]
        return clipped_softmax(solution)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the most probable class of new samples.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Feature vectors.

        Returns
        -------
        ndarray of shape (m,)
        """
        columns = self.predict_proba(X).argmax(axis=1)
        most_probable: NDArray[Any] = self.classes_[columns]
        return most_probable

    def _check_settings(self) -> None:
        if self.n_neighbors != "auto":
            check_integer(self.n_neighbors, "n_neighbors", minimum=1)
        if self.alpha != "auto":
            check_real(self.alpha, "alpha", above=0, below=1)
        if self.n_components is not None:
            check_integer(self.n_components, "n_components", minimum=1)
        check_choice(self.search, "search", SEARCHES)
        check_real(self.target_recall, "target_recall", above=0, at_most=1)
        check_real(self.tol, "tol", above=0)
        check_integer(self.max_iter, "max_iter", minimum=1)
        check_choice(self.dtype, "dtype", ("auto", "float32", "float64"))
        check_choice(self.knn_graph_kind, "knn_graph_kind", GRAPH_KINDS)

    def _bytes_per_probability(self, n_samples: int) -> int:
        """Memory that a fit needs at its peak per sample and class, measured."""
        is_double = self.dtype == "float64" or (self.dtype == "auto" and n_samples <= FLOAT64_UP_TO)
        searches_settings = isinstance(self.n_neighbors, str) or isinstance(self.alpha, str)
        return (32 if is_double else 16) + (20 if searches_settings else 0)

    def _prepared_features(self, X: Any, *, reset: bool) -> FloatArray:
        """Check features, apply PCA if requested and scale to unit length; ``reset`` fits the PCA."""
        with stage("features"):
            features = check_feature_vectors(self, X, reset=reset)
            if reset:
                precision = self.dtype
                if precision == "auto":
                    precision = "float64" if len(features) <= FLOAT64_UP_TO else "float32"
                self._precision = np.dtype(precision)
                if len(features) > 1 and has_equal_rows(features):
                    raise must_be("X", "different between samples", f"{len(features)} equal rows")
                self._axes = None
                if self.n_components is not None:
                    mean, axes, _ = principal_axes(features, self.n_components)
                    self._axes = (mean, axes)
            if self._axes is not None:
                features = project(features, *self._axes)
            return unit_length(features.astype(self._precision, copy=False))

    def _build_graph(
        self, unit: FloatArray | None, knn_graph: Any, codes: IntArray, n_classes: int
    ) -> tuple[Any, IntArray | None]:
        """Build the symmetric graph; also return the sample of every node, if that is not its number."""
        n = len(codes)
        self.search_: str | None = None
        self.recall_: float | None = None
        if knn_graph is not None:
            precision = "float32" if n > FLOAT64_UP_TO else "float64"
            dtype = np.dtype(precision if self.dtype == "auto" else self.dtype)
            affinity = affinity_from_knn_graph(knn_graph, n, kind=self.knn_graph_kind, dtype=dtype)
            self._settle(lambda: {None: normalized(affinity, degrees(affinity))}, [None], codes, n_classes)
            return affinity, None
        if unit is None:
            raise must_be("X", "given unless a 'knn_graph' is", None)
        if self.n_neighbors == "auto":
            counts = fitting_counts(n)
        else:
            counts = [fitting_neighbor_count(self.n_neighbors, n)]
        neighbors = find_neighbors(
            unit,
            counts[-1],
            search=self.search,
            target_recall=self.target_recall,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
            ordered=True,
        )
        self.search_, self.recall_ = neighbors.search, neighbors.recall
        k = self._settle(
            lambda: {k: normalized_graph(neighbors, k) for k in counts}, counts, codes, n_classes
        )
        if k is not None and k < counts[-1]:
            neighbors = neighbors.first(k)
        return symmetric_affinity(neighbors), neighbors.order

    def _settle(
        self, graphs: Any, counts: Sequence[int | None], codes: IntArray, n_classes: int
    ) -> int | None:
        """Choose the settings that are "auto", and store the choice and its candidates."""
        settings = settle_settings(
            graphs, counts, self.alpha, codes, n_classes, random_state=self.random_state, n_jobs=self.n_jobs
        )
        self.n_neighbors_, self.alpha_ = settings.n_neighbors, settings.alpha
        self.settings_ = [one.summary() for one in settings.candidates]
        chosen = settings.n_neighbors or PAPER_NEIGHBORS
        self._n_new_neighbors = chosen if isinstance(self.n_neighbors, str) else self.n_neighbors
        return settings.n_neighbors


def _self_similarity(unit: FloatArray | None, affinity: sparse.csr_array) -> FloatArray:
    """Similarity of every sample to its copy: 1 for unit vectors, else that of its closest neighbor."""
    own = affinity.max(axis=1).toarray().ravel() if unit is None else (unit != 0).any(axis=1)
    return np.asarray(own, dtype=np.float64)
