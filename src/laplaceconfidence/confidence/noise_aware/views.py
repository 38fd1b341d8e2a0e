"""Views of the samples that evidence is computed from: principal coordinates, and graphs over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import randomized_svd

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.noise_aware.propagation import Propagator
from laplaceconfidence.confidence.noise_aware.settings import SETTINGS
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.features.scale import principal_axes, project, unit_length
from laplaceconfidence.graph.affinity import (
    affinity_from_knn_graph,
    degrees,
    normalized,
    normalized_graph,
    symmetric_affinity,
)
from laplaceconfidence.graph.neighborhood import Neighborhood
from laplaceconfidence.graph.neighbors import Neighbors, find_neighbors, fitting_neighbor_count
from laplaceconfidence.stages import stage
from laplaceconfidence.threads import limited_threads, thread_count
from laplaceconfidence.validation import check_integer, must_be

VIEWS = SETTINGS.views


@dataclass(frozen=True, slots=True, eq=False)
class PrincipalAxes:
    """The map from features to the fitted principal coordinates.

    Attributes
    ----------
    largest : float
        Features are divided by it first, so that their squares are representable in single precision.
    mean : ndarray of float32, shape (d,)
        Mean of the divided features.
    axes : ndarray of float32, shape (d, k)
        Principal axes, all divided by the same scale.
    half_whitening : ndarray of float32, shape (k,)
        Factors that divide every axis by the root of its standard deviation, and by a common scale.
    """

    largest: float
    mean: FloatArray
    axes: FloatArray
    half_whitening: FloatArray

    def __call__(self, features: FloatArray) -> FloatArray:
        """Compute coordinates of shape (m, k) from features of shape (m, d)."""
        return project((features / self.largest).astype(np.float32, copy=False), self.mean, self.axes)

    def half_whitened(self, coordinates: FloatArray) -> FloatArray:
        """Divide every coordinate by the root of its standard deviation.

        Full whitening would give axes of noise the same weight as axes of signal; without whitening, the
        first few axes outweigh the rest.

        Parameters
        ----------
        coordinates : ndarray of float32, shape (m, k)
            Principal coordinates.

        Returns
        -------
        ndarray of float32, shape (m, k)
            The mean square of the fitted ones is 1.
        """
        return coordinates * self.half_whitening


def principal_coordinates(
    features: FloatArray, n_components: int | None, *, n_jobs: int | None, rng: np.random.Generator
) -> tuple[FloatArray, PrincipalAxes]:
    """Compute principal coordinates, those of most variance first; the mean square of all entries is 1.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        One row per sample.
    n_components : int or None
        Number of principal axes to keep; ``None`` keeps up to 256.
    n_jobs : int or None
        Number of threads.
    rng : numpy.random.Generator
        Seeds the randomized decomposition of very wide features.

    Returns
    -------
    coordinates : ndarray of float32, shape (n, k)
        The principal coordinates.
    axes : PrincipalAxes
        The map, for new samples.
    """
    with stage("features"), limited_threads(thread_count(n_jobs)):
        largest = np.abs(features).max() or features.dtype.type(1)
        features = (features / largest).astype(np.float32, copy=False)
        n, d = features.shape
        if n_components is not None:
            check_integer(n_components, "n_components", minimum=1, maximum=min(n, d))
        width = n_components or min(VIEWS.most_axes, n, d)
        if d <= VIEWS.widest_covariance:
            mean, axes, variances = principal_axes(features, width)
            coordinates = project(features, mean, axes)
        else:
            mean = features.mean(axis=0, dtype=np.float64).astype(np.float32)
            left, sizes, right = randomized_svd(
                features - mean, width, random_state=int(rng.integers(2**31 - 1))
            )
            coordinates, axes, variances = left * sizes, right.T, sizes**2 / n
        least = max(float(variances[0]) * VIEWS.least_variance, VIEWS.least_absolute_variance)
        kept = variances > least
        if not kept.any():
            raise must_be("X", "different between samples in single precision", f"{n} nearly equal rows")
        coordinates = coordinates[:, kept]
        scale = np.sqrt(np.square(coordinates).mean(dtype=np.float64))
        coordinates = np.ascontiguousarray(coordinates / scale, dtype=np.float32)
        deviations = np.sqrt(variances[kept]) / scale
        half = 1 / np.sqrt(deviations * deviations.mean())
        axes = (axes[:, kept] / scale).astype(np.float32)
        return coordinates, PrincipalAxes(float(largest), mean, axes, half.astype(np.float32))


@dataclass(slots=True, eq=False)
class NeighborGraphs:
    """The graphs that labels are propagated over: nested ones from one search, or one that was passed in.

    Attributes
    ----------
    neighbors : Neighbors or None
        The search that the nested graphs come from.
    counts : tuple of int
        Number of neighbors of every nested graph, ascending.
    passed_in : scipy.sparse.csr_array of shape (n, n) or None
        The affinity of a ``knn_graph``, in place of the nested graphs.
    """

    neighbors: Neighbors | None
    counts: tuple[int, ...]
    passed_in: sparse.csr_array | None = None
    _neighborhood: Neighborhood | None = field(default=None, repr=False)

    @property
    def new_sample_counts(self) -> tuple[int, ...]:
        """Number of neighbors of a new sample per graph; the median of a graph that was passed in."""
        if self.passed_in is None:
            return self.counts
        return (max(1, int(np.median(np.diff(self.passed_in.indptr)))),)

    def affinities(self) -> list[sparse.csr_array]:
        """Compute the symmetric affinities.

        Returns
        -------
        list of scipy.sparse.csr_array of shape (n, n)
            The one of fewest neighbors first.
        """
        if self.neighbors is None:
            return [self.passed_in]
        return [symmetric_affinity(self.neighbors.first(k)) for k in self.counts]

    def normalized(self) -> list[sparse.csr_array]:
        """Compute the normalized graphs.

        Returns
        -------
        list of scipy.sparse.csr_array of shape (n, n)
            In the order of ``affinities``.
        """
        return [normalized(affinity, degrees(affinity)) for affinity in self.affinities()]

    def closest(self) -> sparse.csr_array:
        """Compute the normalized graph of the closest neighbors, or of the one that was passed in.

        Returns
        -------
        scipy.sparse.csr_array of shape (n, n)
        """
        if self.neighbors is None:
            return self.normalized()[0]
        return normalized_graph(self.neighbors, min(VIEWS.closest, self.counts[-1]))

    def neighborhood(self) -> Neighborhood:
        """Neighbors and weights of the widest graph, which contains the edges of all others.

        Returns
        -------
        Neighborhood
        """
        if self._neighborhood is None:
            affinity = self.passed_in if self.neighbors is None else symmetric_affinity(self.neighbors)
            self._neighborhood = Neighborhood.of_graph(affinity)
        return self._neighborhood


@dataclass(frozen=True, slots=True, eq=False)
class FeatureViews:
    """The views that evidence is computed from.

    Attributes
    ----------
    coordinates : ndarray of float32, shape (n, d), or None
        Principal coordinates for the probes; ``None`` without features.
    axes : PrincipalAxes or None
        The map of new samples to these coordinates.
    graphs : NeighborGraphs or None
        The graphs; ``None`` without features and without a graph.
    normalized : list of scipy.sparse.csr_array
        The normalized graphs.
    propagate : Propagator
        Propagates columns over the graphs.
    """

    coordinates: FloatArray | None
    axes: PrincipalAxes | None
    graphs: NeighborGraphs | None
    normalized: list[sparse.csr_array]
    propagate: Propagator

    @property
    def is_empty(self) -> bool:
        """Whether there is neither a probe nor a graph."""
        return self.coordinates is None and self.graphs is None


def find_views(
    features: FloatArray | None,
    knn_graph: Any,
    given: IntArray,
    n_classes: int,
    *,
    n_neighbors: str | int | Sequence[int],
    n_components: int | None,
    search: str,
    target_recall: float,
    knn_graph_kind: str,
    n_jobs: int | None,
    rng: np.random.Generator,
) -> FeatureViews:
    """Compute coordinates of features, and graphs over them.

    Parameters
    ----------
    features : ndarray of shape (n, d) or None
        Feature vectors.
    knn_graph : scipy.sparse matrix of shape (n, n) or None
        A graph that replaces those over the coordinates.
    given : ndarray of shape (n,)
        Given labels, ``MISSING`` where there is none.
    n_classes : int
        Number of classes.
    n_neighbors : int, sequence of int or "auto"
        Number of neighbors per graph.
    n_components : int or None
        Number of principal axes to keep; ``None`` keeps up to 256.
    search, target_recall
        As in ``find_neighbors``.
    knn_graph_kind : {"similarity", "cosine_distance", "distance"}
        What the values of ``knn_graph`` are.
    n_jobs : int or None
        Number of threads.
    rng : numpy.random.Generator
        Seeds the randomized decomposition and the approximate search.

    Returns
    -------
    FeatureViews
    """
    coordinates, axes, graphs = None, None, None
    if features is not None:
        coordinates, axes = principal_coordinates(features, n_components, n_jobs=n_jobs, rng=rng)
    if knn_graph is not None:
        affinity = affinity_from_knn_graph(knn_graph, len(given), kind=knn_graph_kind)
        graphs = NeighborGraphs(None, (), affinity)
    elif coordinates is not None and axes is not None:
        counts = neighbor_counts(n_neighbors, given, n_classes)
        neighbors = find_neighbors(
            unit_length(axes.half_whitened(coordinates)),
            counts[-1],
            search=search,
            target_recall=target_recall,
            n_jobs=n_jobs,
            random_state=rng,
        )
        graphs = NeighborGraphs(neighbors, tuple(counts))
    made = [] if graphs is None else graphs.normalized()
    return FeatureViews(coordinates, axes, graphs, made, Propagator(n_jobs))


def neighbor_counts(wanted: str | int | Sequence[int], given: IntArray, n_classes: int) -> list[int]:
    """The numbers of neighbors of the graphs.

    Parameters
    ----------
    wanted : int, sequence of int or "auto"
        "auto" depends on the number and the size of the classes.
    given : ndarray of shape (n,)
        Given labels, ``MISSING`` where there is none.
    n_classes : int
        Number of classes.

    Returns
    -------
    list of int
        Ascending, each at most n - 1.
    """
    if not isinstance(wanted, str):
        return sorted({fitting_neighbor_count(k, len(given)) for k in np.atleast_1d(wanted).tolist()})
    class_size = (given != MISSING).sum() / n_classes
    automatic = VIEWS.neighbors_of_small_classes
    if class_size >= VIEWS.large_class:
        automatic = VIEWS.neighbors_of_large_classes
    return sorted({min(k, len(given) - 1) for k in automatic})
