"""Search for the k most similar samples of every sample, exactly (on a GPU if there is one) or by an inverted
file.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import faiss
import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import FloatArray, IntArray, row_blocks
from laplaceconfidence.exceptions import AdjustedSettingWarning
from laplaceconfidence.graph import gpu_search
from laplaceconfidence.graph.inverted_file import QUERIES_AT_ONCE, approximate_neighbors
from laplaceconfidence.graph.recall import without_self
from laplaceconfidence.stages import stage
from laplaceconfidence.threads import limited_threads, thread_count
from laplaceconfidence.validation import check_choice, check_integer, check_random_state, must_be

SEARCHES = ("auto", "exact", "ivf")

IVF_FROM = 20_000  # samples; below, the exact search takes about as long


@dataclass(frozen=True, slots=True)
class Neighbors:
    """The neighbors of every sample, most similar first; the sample itself is never among them.

    Attributes
    ----------
    indices : ndarray of int64 or int32, shape (n, k)
        Row numbers of the neighbors, -1 where fewer than k were found.
    similarities : ndarray of shape (n, k)
        Inner products of the unit vectors, -inf where ``indices`` are -1.
    search : {"exact", "ivf"}
        The search that was used.
    recall : float
        Share of the true neighbors that was found, measured on a sample (1 for an exact search).
    order : ndarray of int64, shape (n,), or None
        The sample of every row, where rows are in an order in which neighbors are near each other; ``None``
        if row i is sample i.
    """

    indices: NDArray[Any]
    similarities: FloatArray
    search: Literal["exact", "ivf"]
    recall: float
    order: IntArray | None = None

    def first(self, k: int) -> Neighbors:
        """Keep the most similar neighbors of every sample.

        Parameters
        ----------
        k : int
            Number of neighbors to keep.

        Returns
        -------
        Neighbors
        """
        return replace(
            self,
            indices=np.ascontiguousarray(self.indices[:, :k]),
            similarities=np.ascontiguousarray(self.similarities[:, :k]),
        )

    def by_sample(self) -> Neighbors:
        """Bring the rows into the order of the samples.

        Returns
        -------
        Neighbors
            Without an order.
        """
        if self.order is None:
            return self
        indices = np.empty(self.indices.shape, dtype=np.int64)
        similarities = np.empty_like(self.similarities)
        for rows in row_blocks(len(indices), QUERIES_AT_ONCE):
            own, found = self.order[rows], self.indices[rows]
            indices[own] = np.where(found >= 0, self.order[found], -1)
            similarities[own] = self.similarities[rows]
        return replace(self, indices=indices, similarities=similarities, order=None)


def fitting_neighbor_count(n_neighbors: Any, n_samples: int, parameter: str = "n_neighbors") -> int:
    """Check a number of neighbors; it is lowered with a warning if there are fewer other samples.

    Parameters
    ----------
    n_neighbors : int
        Number of neighbors per sample.
    n_samples : int
        Number of samples, at least 2.
    parameter : str, default="n_neighbors"
        Name of the parameter in messages.

    Returns
    -------
    int
    """
    k = check_integer(n_neighbors, parameter, minimum=1)
    if n_samples < 2:
        raise must_be("features", "at least two samples", f"1 sample (n_samples={n_samples})")
    if k >= n_samples:
        warnings.warn(
            f"'{parameter}' was lowered from {k} to {n_samples - 1}: there are only {n_samples} samples.",
            AdjustedSettingWarning,
            stacklevel=3,
        )
        return n_samples - 1
    return k


def find_neighbors(
    unit_features: FloatArray,
    n_neighbors: int,
    *,
    search: str = "auto",
    target_recall: float = 0.95,
    n_jobs: int | None = None,
    random_state: Any = None,
    ordered: bool = False,
) -> Neighbors:
    """Find the most similar other samples of every sample, by inner product.

    Parameters
    ----------
    unit_features : ndarray of shape (n, d)
        Rows of unit length. Similarities have the same precision; the search itself runs in float32.
    n_neighbors : int
        Number of neighbors per sample, at most n - 1.
    search : {"auto", "exact", "ivf"}, default="auto"
        "ivf" is an inverted file, approximate and fast; "auto" uses it from 20,000 samples on, unless the
        samples have so little structure that an exact search takes less time, or faiss sees a GPU, on which
        the search is exact.
    target_recall : float, default=0.95
        Share of the true neighbors that an inverted file must find, measured on a sample.
    n_jobs : int or None, default=None
        Number of threads; ``None`` and -1 use all cores.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the inverted file.
    ordered : bool, default=False
        Whether rows may be in an order in which neighbors are near each other, if the search knows one.

    Returns
    -------
    Neighbors
        Most similar first.
    """
    check_choice(search, "search", SEARCHES)
    check_integer(n_neighbors, "n_neighbors", minimum=1, maximum=len(unit_features) - 1)
    points = np.ascontiguousarray(unit_features, dtype=np.float32)
    found, is_large = None, len(points) >= IVF_FROM
    on_gpu = search == "auto" and is_large and gpu_search.can_search_on_gpu(len(points), n_neighbors + 1)
    with limited_threads(thread_count(n_jobs)):
        if search == "ivf" or (search == "auto" and is_large and not on_gpu):
            found = approximate_neighbors(
                points,
                n_neighbors,
                target_recall,
                check_random_state(random_state),
                n_threads=thread_count(n_jobs),
                at_any_cost=search == "ivf",
            )
        if found is not None:
            indices, similarities, recall, order = found
            neighbors = Neighbors(indices, similarities, "ivf", recall, order)
        else:
            with stage("neighbors", total=len(points)) as advance:
                exact = _exact(points, points, n_neighbors, advance, others_only=True, on_gpu=on_gpu)
            neighbors = Neighbors(*exact, "exact", 1.0)
    if not ordered:
        neighbors = neighbors.by_sample()
    if unit_features.dtype == np.float64:
        unit = unit_features if neighbors.order is None else unit_features[neighbors.order]
        neighbors = replace(neighbors, similarities=_inner_products(unit, neighbors.indices))
    return neighbors


def euclidean_neighbors(points: FloatArray, n_neighbors: int, *, n_jobs: int | None = None) -> Neighbors:
    """Find the nearest other samples of every sample by Euclidean distance, with an exact search.

    Parameters
    ----------
    points : ndarray of shape (n, d)
        Vectors of any length.
    n_neighbors : int
        Number of neighbors per sample, at most n - 1.
    n_jobs : int or None, default=None
        Number of threads; ``None`` and -1 use all cores.

    Returns
    -------
    Neighbors
        Nearest first; the similarities are 1 / (1 + squared distance).
    """
    check_integer(n_neighbors, "n_neighbors", minimum=1, maximum=len(points) - 1)
    centered = np.ascontiguousarray(points - points.mean(axis=0), dtype=np.float32)
    index = faiss.IndexFlatL2(centered.shape[1])
    index.add(centered)
    similarities = np.empty((len(centered), n_neighbors), dtype=np.float32)
    indices = np.empty((len(centered), n_neighbors), dtype=np.int64)
    with limited_threads(thread_count(n_jobs)), stage("neighbors", total=len(centered)) as advance:
        for block in row_blocks(len(centered), QUERIES_AT_ONCE):
            rows = np.arange(block.start, block.stop)
            squared, found = index.search(centered[rows], n_neighbors + 1)
            similar = 1 / (1 + np.maximum(squared, 0))
            indices[rows], similarities[rows] = without_self(rows, found, similar)
            advance(len(rows))
    return Neighbors(indices, similarities, "exact", 1.0)


def nearest_among(
    unit_queries: FloatArray, unit_features: FloatArray, n_neighbors: int, *, n_jobs: int | None = None
) -> tuple[IntArray, FloatArray]:
    """Find the samples that are most similar to each query, by an exact search.

    Parameters
    ----------
    unit_queries : ndarray of shape (m, d)
        Queries, rows of unit length.
    unit_features : ndarray of shape (n, d)
        Samples, rows of unit length.
    n_neighbors : int
        Number of samples per query; at most n are returned.
    n_jobs : int or None, default=None
        Number of threads; ``None`` and -1 use all cores.

    Returns
    -------
    indices : ndarray of int64, shape (m, k)
        Row numbers of the samples, most similar first.
    similarities : ndarray of float32, shape (m, k)
        Their inner products with the query.
    """
    queries = np.ascontiguousarray(unit_queries, dtype=np.float32)
    points = np.ascontiguousarray(unit_features, dtype=np.float32)
    with limited_threads(thread_count(n_jobs)), stage("neighbors", total=len(queries)) as advance:
        return _exact(queries, points, min(n_neighbors, len(points)), advance)


def _exact(
    queries: FloatArray,
    points: FloatArray,
    k: int,
    advance: Callable[[int], None],
    *,
    others_only: bool = False,
    on_gpu: bool = False,
) -> tuple[IntArray, FloatArray]:
    """The k points most similar to each query; with ``others_only`` the queries are the points themselves."""
    if on_gpu:
        search, at_once = gpu_search.gpu_search(points), gpu_search.QUERIES_AT_ONCE
    else:
        index = faiss.IndexFlatIP(points.shape[1])
        index.add(points)
        search, at_once = index.search, QUERIES_AT_ONCE
    similarities = np.empty((len(queries), k), dtype=np.float32)
    indices = np.empty((len(queries), k), dtype=np.int64)
    for block in row_blocks(len(queries), at_once):
        rows = np.arange(block.start, block.stop)
        similar, found = search(queries[block], k + 1 if others_only else k)
        if others_only:
            found, similar = without_self(rows, found, similar)
        indices[rows], similarities[rows] = found, similar
        advance(len(rows))
    return indices, similarities


def _inner_products(points: FloatArray, indices: NDArray[Any]) -> FloatArray:
    """Inner products of every point with its neighbors, in the precision of the points."""
    similarities = np.empty(indices.shape, dtype=points.dtype)
    for rows in row_blocks(len(points), 1024):
        similarities[rows] = np.einsum("id,ikd->ik", points[rows], points[indices[rows]])
    similarities[indices < 0] = -np.inf
    return similarities
