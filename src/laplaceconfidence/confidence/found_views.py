"""The views of the samples that evidence is drawn from: coordinates and graphs, made or brought along."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.candidate_classes import ALL_UP_TO
from laplaceconfidence.confidence.feature_views import half_whitened, nested_graphs
from laplaceconfidence.confidence.graph_evidence import Spreader
from laplaceconfidence.confidence.self_training import Views
from laplaceconfidence.confidence.settings_search import normalized_graph
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.graph.affinity import affinity_from_knn_graph, degrees, normalized, symmetric_affinity
from laplaceconfidence.graph.neighbors import fitting_neighbor_count

CLOSEST = 10  # neighbors of the graph whose votes are an opinion of their own


@dataclass(frozen=True, slots=True)
class FoundViews:
    """Views, and what the neighbor search used and reached (``None`` without one)."""

    views: Views
    n_neighbors: int | None = None
    search: str | None = None
    recall: float | None = None
    affinity: sparse.csr_array | None = None  # of the widest graph, before normalization


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
) -> FoundViews:
    """Coordinates of ``features``, and their graphs unless a ``knn_graph`` takes their place."""
    spread = Spreader(n_jobs)
    # With many classes a column for each would cost most, and few neighbors say little.
    wants_votes = n_classes <= ALL_UP_TO
    closest: Callable[[], sparse.csr_array]
    coordinates = None
    if features is not None:
        coordinates = half_whitened(features, n_components, n_jobs=n_jobs, rng=rng)
    if knn_graph is not None:
        affinity = affinity_from_knn_graph(knn_graph, len(given), kind=knn_graph_kind)
        graph = normalized(affinity, degrees(affinity))
        closest = partial(_itself, graph)
        views = Views(coordinates, [graph], spread, closest if wants_votes else None)
        return FoundViews(views, affinity=affinity)
    if coordinates is None:
        return FoundViews(Views(None, [], spread, None))
    counts = neighbor_counts(n_neighbors, given, n_classes)
    graphs, neighbors = nested_graphs(
        coordinates, counts, search=search, target_recall=target_recall, n_jobs=n_jobs, rng=rng
    )
    closest = partial(normalized_graph, neighbors, min(CLOSEST, counts[-1]))
    views = Views(coordinates, graphs, spread, closest if wants_votes else None)
    return FoundViews(views, counts[-1], neighbors.search, neighbors.recall, symmetric_affinity(neighbors))


def neighbor_counts(wanted: str | int | Sequence[int], given: IntArray, n_classes: int) -> list[int]:
    """The numbers of neighbors of the graphs, ascending; "auto" goes by the size of the classes."""
    if not isinstance(wanted, str):
        return sorted({fitting_neighbor_count(k, len(given)) for k in np.atleast_1d(wanted).tolist()})
    # More neighbors than a class has members only add other classes.
    class_size = (given != MISSING).sum() / n_classes
    automatic = [30, 100] if class_size >= 100 else [10, 30]
    if n_classes > ALL_UP_TO:  # a second graph costs most there and adds least
        automatic = [30]
    return sorted({min(k, len(given) - 1) for k in automatic})


def _itself(graph: sparse.csr_array) -> sparse.csr_array:
    return graph
