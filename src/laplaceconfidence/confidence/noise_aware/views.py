"""Views of the samples that evidence is computed from: principal coordinates, and graphs over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy import sparse

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.confidence.noise_aware.coordinates import PrincipalAxes, principal_coordinates
from laplaceconfidence.confidence.noise_aware.discriminants import tails_are_heavy
from laplaceconfidence.confidence.noise_aware.feature_sets import ALL_VIEWS, FeatureSet
from laplaceconfidence.confidence.noise_aware.propagation import Propagator
from laplaceconfidence.confidence.noise_aware.settings import SETTINGS
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.features.scale import unit_length
from laplaceconfidence.graph.affinity import (
    Graph,
    OrderedGraph,
    affinity_from_knn_graph,
    by_sample,
    degrees,
    in_order,
    normalized,
    normalized_graph,
    symmetric_affinity,
)
from laplaceconfidence.graph.neighborhood import Neighborhood
from laplaceconfidence.graph.neighbors import Neighbors, find_neighbors, fitting_neighbor_count

VIEWS = SETTINGS.views

Metric = Literal["half-whitened", "raw"]
PROBE_NAMES = ("regression", "discriminant")


@dataclass(frozen=True, slots=True, eq=False)
class NeighborGraph:
    """A graph that labels are propagated over: from a search, or one that was passed in.

    Attributes
    ----------
    metric : {"half-whitened", "raw"}
        Of which vectors the similarities are cosines.
    n_neighbors : int
        Number of neighbors of a sample; the median of a graph that was passed in.
    normalized : scipy.sparse.csr_array of shape (n, n), or OrderedGraph
        The normalized graph.
    degree : ndarray of float64, shape (n,)
        The degrees of its nodes.
    closest_neighbors : Neighbors or None
        The closest neighbors of every sample; ``None`` for a graph that was passed in.
    """

    metric: Metric
    n_neighbors: int
    normalized: Graph
    degree: FloatArray
    closest_neighbors: Neighbors | None

    @classmethod
    def of_neighbors(cls, metric: Metric, neighbors: Neighbors) -> NeighborGraph:
        """Make the graph of neighbors, of which only the closest ones are kept.

        Parameters
        ----------
        metric : {"half-whitened", "raw"}
            Of which vectors the similarities are cosines.
        neighbors : Neighbors
            The neighbors.

        Returns
        -------
        NeighborGraph
        """
        k = neighbors.indices.shape[1]
        affinity = symmetric_affinity(neighbors)
        degree = degrees(affinity)
        graph = in_order(normalized(affinity, degree, in_place=True), neighbors.order)
        return cls(metric, k, graph, degree, neighbors.first(min(VIEWS.closest, k)))

    @classmethod
    def of_affinity(cls, affinity: sparse.csr_array) -> NeighborGraph:
        """Make the graph of an affinity that was passed in.

        Parameters
        ----------
        affinity : scipy.sparse.csr_array of shape (n, n)
            The affinity of a ``knn_graph``.

        Returns
        -------
        NeighborGraph
        """
        k, degree = max(1, int(np.median(np.diff(affinity.indptr)))), degrees(affinity)
        return cls("half-whitened", k, normalized(affinity, degree), degree, None)

    @property
    def name(self) -> str:
        """Name of the graph as a kind of evidence."""
        if self.closest_neighbors is None:
            return "graph"
        return f"{self.metric} graph of {self.n_neighbors} neighbors"

    @property
    def degree_by_sample(self) -> FloatArray:
        """ndarray of float64, shape (n,): the degree of every sample."""
        if not isinstance(self.normalized, OrderedGraph):
            return self.degree
        degree = np.empty_like(self.degree)
        degree[self.normalized.order] = self.degree
        return degree

    def neighborhood(self) -> Neighborhood:
        """Compute the neighbors and their weights, by sample.

        Returns
        -------
        Neighborhood
        """
        weights = by_sample(self.normalized)
        return Neighborhood(normalized(weights, 1 / self.degree_by_sample), weights)

    def closest(self) -> Graph:
        """Compute the normalized graph of the closest neighbors, or of the one that was passed in.

        Returns
        -------
        scipy.sparse.csr_array of shape (n, n), or OrderedGraph
        """
        if self.closest_neighbors is None:
            return self.normalized
        return normalized_graph(self.closest_neighbors, self.closest_neighbors.indices.shape[1])

    def vectors(self, axes: PrincipalAxes, coordinates: FloatArray) -> FloatArray:
        """Compute the vectors of length 1 whose inner products are the similarities.

        Parameters
        ----------
        axes : PrincipalAxes
            The map to the coordinates.
        coordinates : ndarray of shape (m, k)
            Principal coordinates.

        Returns
        -------
        ndarray of float32, shape (m, k) or (m, k + 1)
        """
        return metric_vectors(self.metric, axes, coordinates)


def metric_vectors(metric: Metric, axes: PrincipalAxes, coordinates: FloatArray) -> FloatArray:
    """Compute vectors of length 1 whose inner products are the similarities of a metric.

    Parameters
    ----------
    metric : {"half-whitened", "raw"}
        The metric.
    axes : PrincipalAxes
        The map to the coordinates.
    coordinates : ndarray of shape (m, k)
        Principal coordinates.

    Returns
    -------
    ndarray of float32, shape (m, k) or (m, k + 1)
    """
    change = axes.half_whitened if metric == "half-whitened" else axes.uncentered
    return unit_length(change(coordinates))


@dataclass(frozen=True, slots=True, eq=False)
class FeatureView:
    """One view: coordinates for the probes, and graphs.

    The joint view of several is that of their coordinates side by side. It has probes but no graphs.

    Attributes
    ----------
    name : str
        Name of the view.
    present : ndarray of bool, shape (n,), or None
        Which samples are in the view; ``None`` if all are. The others have coordinates 0 and no neighbors.
    coordinates : ndarray of float32, shape (n, d), or None
        Principal coordinates for the probes; ``None`` without features.
    axes : PrincipalAxes or None
        The map of features, or of the coordinates of all views side by side, to these coordinates.
    graphs : tuple of NeighborGraph
        The graphs; empty if a ``knn_graph`` replaces them.
    is_joint : bool
        Whether this is the joint view of all others.
    heavy_tails : bool
        Whether the classes have heavy tails on the coordinates.
    """

    name: str
    present: BoolArray | None
    coordinates: FloatArray | None
    axes: PrincipalAxes | None
    graphs: tuple[NeighborGraph, ...]
    is_joint: bool = False
    heavy_tails: bool = False

    @property
    def evidence_names(self) -> list[str]:
        """Names of the kinds of evidence, in the order in which they are computed."""
        probes = () if self.coordinates is None else PROBE_NAMES
        return [*probes] + [graph.name for graph in self.graphs]

    def visible(self, mask: FloatArray) -> FloatArray:
        """Set entries of samples that are not in the view to 0.

        Parameters
        ----------
        mask : ndarray of shape (n, fits)
            Weights of the samples in every fit.

        Returns
        -------
        ndarray of shape (n, fits)
        """
        return mask if self.present is None else np.where(self.present[:, None], mask, np.float32(0))


@dataclass(frozen=True, slots=True, eq=False)
class FeatureViews:
    """All views that evidence is computed from.

    Attributes
    ----------
    each : list of FeatureView
        The views; empty without features and without a graph. The last of several is the joint view.
    propagate : Propagator
        Propagates columns over the graphs.
    """

    each: list[FeatureView]
    propagate: Propagator

    @property
    def is_empty(self) -> bool:
        """Whether there is neither a probe nor a graph."""
        return not self.each

    @property
    def has_features(self) -> bool:
        """Whether new samples can be compared with the fitted ones."""
        return any(view.coordinates is not None for view in self.each)

    @property
    def widest_graph(self) -> NeighborGraph | None:
        """The graph of most neighbors of the first view that has any; it stands for all in explanations."""
        graphs = next((view.graphs for view in self.each if view.graphs), ())
        return max(graphs, key=lambda graph: graph.n_neighbors, default=None)

    @property
    def is_graph(self) -> BoolArray:
        """Which kinds of evidence come from graphs, in the order in which they are computed."""
        return np.array([kind not in PROBE_NAMES for _, kind in self.evidence_names], dtype=bool)

    @property
    def evidence_names(self) -> list[tuple[str, str]]:
        """View and kind of every evidence, in the order in which they are computed."""
        return [(view.name, kind) for view in self.each for kind in view.evidence_names]


def find_views(
    feature_sets: list[FeatureSet],
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
    feature_sets : list of FeatureSet
        The feature vectors of every view; may be empty.
    knn_graph : scipy.sparse matrix of shape (n, n) or None
        A graph that replaces those over the coordinates of all views.
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
    passed_in: tuple[NeighborGraph, ...] = ()
    if knn_graph is not None:
        affinity = affinity_from_knn_graph(knn_graph, len(given), kind=knn_graph_kind)
        passed_in = (NeighborGraph.of_affinity(affinity),)
    each: list[FeatureView] = []
    for one in feature_sets:
        rows = slice(None) if one.present is None else one.present
        labels = given[rows]
        several = len(feature_sets) > 1 or one.present is not None
        width = min(n_components, len(labels), one.values.shape[1]) if several and n_components else None
        found, axes = principal_coordinates(one.values[rows], width or n_components, n_jobs=n_jobs, rng=rng)
        graphs = passed_in if not each else ()
        if not passed_in:
            for number, k in enumerate(neighbor_counts(n_neighbors, labels, n_classes)):
                metric: Metric = "raw" if number else "half-whitened"
                neighbors = find_neighbors(
                    metric_vectors(metric, axes, found),
                    k,
                    search=search,
                    target_recall=target_recall,
                    n_jobs=n_jobs,
                    random_state=rng,
                    ordered=one.present is None,
                )
                neighbors = _among_all(neighbors, one.present)
                graphs = (*graphs, NeighborGraph.of_neighbors(metric, neighbors))
                del neighbors  # they take as much memory as the graph
        heavy = tails_are_heavy(found, labels, n_classes, n_jobs=n_jobs)
        coordinates = _at_all(found, one.present)
        each.append(FeatureView(one.name, one.present, coordinates, axes, graphs, heavy_tails=heavy))
    if passed_in and not each:
        each.append(FeatureView("knn_graph", None, None, None, passed_in))
    if len(each) > 1:
        each.append(_joint_view(each, given, n_classes, n_components, n_jobs=n_jobs, rng=rng))
    return FeatureViews(each, Propagator(n_jobs))


def _joint_view(
    each: list[FeatureView],
    given: IntArray,
    n_classes: int,
    n_components: int | None,
    *,
    n_jobs: int | None,
    rng: np.random.Generator,
) -> FeatureView:
    """The view of all coordinates side by side."""
    parts = [view.coordinates for view in each if view.coordinates is not None]
    joint = side_by_side(parts, [view.present for view in each])
    rows = slice(None) if joint.present is None else joint.present
    width = None if n_components is None else min(n_components, *joint.values[rows].shape)
    found, axes = principal_coordinates(joint.values[rows], width, n_jobs=n_jobs, rng=rng)
    return FeatureView(
        joint.name,
        joint.present,
        _at_all(found, joint.present),
        axes,
        (),
        is_joint=True,
        heavy_tails=tails_are_heavy(found, given[rows], n_classes, n_jobs=n_jobs),
    )


def side_by_side(coordinates: Sequence[FloatArray], presences: Sequence[BoolArray | None]) -> FeatureSet:
    """Make one more feature set of the coordinates of all views, whose mean square is the same in each.

    Parameters
    ----------
    coordinates : sequence of ndarray of shape (m, k)
        Principal coordinates in every view.
    presences : sequence of ndarray of bool, shape (m,), or None
        Which samples are in every view; ``None`` if all are.

    Returns
    -------
    FeatureSet
        Of the samples that are in any view. Where one is not in a view, 0 stands for it, the mean.
    """
    parts = [
        part if present is None else np.where(present[:, None], part, part.dtype.type(0))
        for part, present in zip(coordinates, presences, strict=True)
    ]
    known = [present for present in presences if present is not None]
    in_any = np.logical_or.reduce(known) if len(known) == len(parts) else None
    return FeatureSet(ALL_VIEWS, np.concatenate(parts, axis=1), in_any)


def count_views(feature_sets: Sequence[FeatureSet]) -> int:
    """Number of views that a fit computes evidence from: the joint one of several is one more.

    Parameters
    ----------
    feature_sets : sequence of FeatureSet
        The feature sets of the fit; may be empty.

    Returns
    -------
    int
        At least 1.
    """
    n = len(feature_sets)
    return n + 1 if n > 1 else 1


def _at_all(coordinates: FloatArray, present: BoolArray | None) -> FloatArray:
    """Coordinates (n, d) of all samples: 0 for those that are not in the view."""
    if present is None:
        return coordinates
    of_all = np.zeros((len(present), coordinates.shape[1]), dtype=coordinates.dtype)
    of_all[present] = coordinates
    return of_all


def _among_all(neighbors: Neighbors, present: BoolArray | None) -> Neighbors:
    """Neighbors by their row numbers among all samples; there are none of samples not in the view."""
    if present is None:
        return neighbors
    rows = np.flatnonzero(present)
    shape = (len(present), neighbors.indices.shape[1])
    indices = np.full(shape, -1, dtype=neighbors.indices.dtype)
    similarities = np.full(shape, -np.inf, dtype=neighbors.similarities.dtype)
    indices[rows] = np.where(neighbors.indices < 0, -1, rows[neighbors.indices])
    similarities[rows] = neighbors.similarities
    return replace(neighbors, indices=indices, similarities=similarities)


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
