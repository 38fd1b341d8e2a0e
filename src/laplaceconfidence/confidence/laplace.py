"""LaplaceConfidence: the paper's estimator."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.feature_vectors import check_feature_vectors
from laplaceconfidence.confidence.given_labels import at_given_labels, check_contrasting_labels
from laplaceconfidence.confidence.node_weights import check_node_weights, self_similarity
from laplaceconfidence.confidence.protocol import Evidence
from laplaceconfidence.confidence.settings_search import (
    PAPER_NEIGHBORS,
    fitting_counts,
    settle_settings,
)
from laplaceconfidence.confidence.softmax import clipped_softmax
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.features.scale import principal_axes, project, unit_length
from laplaceconfidence.graph.affinity import (
    GRAPH_KINDS,
    affinity_from_knn_graph,
    degrees,
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
from laplaceconfidence.solve.propagation import propagate_labels
from laplaceconfidence.stages import StageTimer, observing, stage
from laplaceconfidence.validation import (
    check_choice,
    check_integer,
    check_real,
    check_same_length,
    must_be,
)

FLOAT64_UP_TO = 5_000  # samples; "auto" precision: below this the better one costs nothing


class LaplaceConfidence(ClassifierMixin, BaseEstimator):
    """Probability that each given label is right, from the minimum of a graph's Laplacian energy.

    Chen et al., "LaplaceConfidence: a Graph-based Approach for Learning with Noisy Labels". A graph joins
    every sample to its ``n_neighbors`` most similar ones; the given labels spread over it until neighbors
    agree as well as they can without leaving the given labels altogether. A label that fits into that
    state is trusted.

    Parameters
    ----------
    n_neighbors : neighbors of a sample in the graph. Lowered with a warning if there are not that many.
        "auto" takes the number under which hidden given labels are most likely.
    alpha : how far labels spread, in (0, 1); the paper's mu is 1/alpha - 1. "auto" as for ``n_neighbors``.
    n_components : principal components to keep before the graph is built; ``None`` keeps the features.
    search : "exact", "ivf" (approximate, fast) or "auto": IVF from 20,000 samples on.
    target_recall : share of the true neighbors an approximate search must find, as measured on a sample.
    tol, max_iter : the conjugate gradients stop at this relative residual, or after so many iterations.
    dtype : "float32", "float64" or "auto": float64 up to 5,000 samples, float32 above.
    knn_graph_kind : what the values of a ``knn_graph`` passed to ``fit`` are: "similarity",
        "cosine_distance" or any other "distance".
    missing_label : a value of ``y`` that means "no label", besides ``None``, NaN and the empty string.
    n_jobs : threads; ``None`` and -1 take every core.
    random_state : seed of the approximate search and of the labels hidden for "auto".

    Attributes
    ----------
    confidence_ : (n,) probability that the given label is right, NaN where none was given.
    label_distributions_ : (n, C) probability of every class, for every sample.
    transduction_ : (n,) the most probable class.
    classes_ : (C,) the classes, in the order of the columns.
    n_iter_, residual_, converged_ : iterations, largest true relative residual, and whether ``tol`` was
        reached; ``class_residuals_`` has one residual a class.
    energy_ : Laplacian energy of the given labels and of the solution, ``(given, solution)``.
    affinity_ : (n, n) the symmetric graph the labels spread on.
    alpha_, settings_ : the alpha used, and the candidates for "auto", best first, with the mean
        log-likelihood of the hidden labels and the folds each one ran (empty where nothing was chosen).
    n_neighbors_, search_, recall_ : what the neighbor search really used and reached (``None`` for a graph
        that was passed in).
    timings_ : seconds by stage.

    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> y[0] = 7                                          # a wrong label
    >>> LaplaceConfidence().fit(X, y).confidence_.argmin()
    np.int64(0)
    """

    evidence: ClassVar[Evidence] = "features"

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

        ``X`` are features (n, d); it may be ``None`` when a ``knn_graph`` (sparse, n x n, values as
        ``knn_graph_kind`` says, symmetric or not) is passed in. ``sample_weight`` makes a sample count as
        that many copies of itself: 0 means that it is judged but not heard.
        """
        self._check_settings()
        timer = StageTimer()
        with observing(timer):
            unit = None if X is None else self._prepared_features(X, reset=True)
            labels = check_contrasting_labels(y, self.missing_label)
            n = len(labels.codes)
            if unit is not None:
                check_same_length("X", len(unit), "y", n)
            weights = check_node_weights(sample_weight, n)
            heard_codes = labels.codes if weights is None else np.where(weights > 0, labels.codes, MISSING)
            affinity, order = self._build_graph(unit, knn_graph, heard_codes, len(labels.class_values))
            result = propagate_labels(
                affinity,
                labels.codes,
                len(labels.class_values),
                alpha=self.alpha_,
                tol=self.tol,
                max_iter=self.max_iter,
                node_weights=weights,
                self_similarity=None if weights is None else self_similarity(unit, affinity),
                order=order,
                n_jobs=self.n_jobs,
            )
            with stage("confidence"):
                self.label_distributions_ = clipped_softmax(result.solution)
                self.confidence_ = at_given_labels(self.label_distributions_, labels.codes)
        self.classes_ = labels.class_values
        self.transduction_ = self.classes_[self.label_distributions_.argmax(axis=1)]
        self.affinity_ = affinity
        self.n_iter_ = max(1, int(result.n_iterations.max()))
        self.class_residuals_ = result.residuals
        self.residual_ = result.residuals.max()
        self.converged_ = result.converged
        self.energy_ = result.energy
        self.timings_ = timer.seconds
        self._unit_features = unit
        heard = np.ones(n) if weights is None else weights
        self._message = result.solution * (heard / np.sqrt(result.degree))[:, None].astype(affinity.dtype)
        self._heard = heard
        if not self.converged_:
            warnings.warn(
                f"The conjugate gradients stopped after max_iter={self.max_iter} iterations at a relative "
                f"residual of {self.residual_:.2g}; 'tol' asks for {self.tol:g}. The ranking is usually "
                "settled by then; raise 'max_iter' for more digits.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    @property
    def neighborhood_(self) -> Neighborhood:
        """The neighbors and weights of the normalized graph that the labels spread on."""
        return Neighborhood.of_graph(self.affinity_)

    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities (m, C) of new samples, each joined to the graph as a node without a label."""
        check_is_fitted(self)
        if self._unit_features is None:
            raise InvalidInputError(
                "Fitted on a 'knn_graph' without features: new samples have no place in it."
            )
        queries = self._prepared_features(X, reset=False)
        nearest, similarities = nearest_among(queries, self._unit_features, self._n_votes, n_jobs=self.n_jobs)
        weights = np.maximum(similarities, 0).astype(self._message.dtype)  # (m, k)
        degree = (weights * self._heard[nearest]).sum(axis=1)
        degree[degree <= 0] = 1.0
        solution = np.empty((len(queries), len(self.classes_)), dtype=self._message.dtype)
        for start in range(0, len(queries), 1024):
            rows = slice(start, start + 1024)
            solution[rows] = np.einsum("mk,mkc->mc", weights[rows], self._message[nearest[rows]])
        solution *= (self.alpha_ / np.sqrt(degree))[:, None]
        return clipped_softmax(solution)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of new samples."""
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

    def _prepared_features(self, X: Any, *, reset: bool) -> FloatArray:
        """Checked, reduced as asked, and of unit length; fitted with ``reset``, applied without."""
        with stage("features"):
            features = check_feature_vectors(self, X, reset=reset)
            if reset:
                precision = self.dtype
                if precision == "auto":
                    precision = "float64" if len(features) <= FLOAT64_UP_TO else "float32"
                self._precision = np.dtype(precision)
                if len(features) > 1 and (features == features[0]).all():
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
        """The symmetric graph, and a numbering in which neighbors are near each other, if one is known."""
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
        """Choose what is "auto" and keep what was chosen, and from what."""
        settings = settle_settings(
            graphs, counts, self.alpha, codes, n_classes, random_state=self.random_state, n_jobs=self.n_jobs
        )
        self.n_neighbors_, self.alpha_ = settings.n_neighbors, settings.alpha
        self.settings_ = [one.summary() for one in settings.candidates]
        chosen = settings.n_neighbors or PAPER_NEIGHBORS
        self._n_votes = chosen if isinstance(self.n_neighbors, str) else self.n_neighbors
        return settings.n_neighbors
