"""The symmetric, weighted graph of neighbors and its normalized form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from laplaceconfidence.arrays import FloatArray, IntArray, row_blocks
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.graph.neighbors import Neighbors
from laplaceconfidence.stages import stage
from laplaceconfidence.validation import check_choice, must_be

_ROWS_PER_BLOCK = 16_384
_TRANSPOSED_ROWS = 8 * _ROWS_PER_BLOCK

GRAPH_KINDS = ("similarity", "cosine_distance", "distance")


def symmetric_affinity(neighbors: Neighbors) -> sparse.csr_array:
    """Compute A = max(W, W^T), where W contains the similarities of the neighbors, clipped at 0.

    Parameters
    ----------
    neighbors : Neighbors
        k neighbors per sample.

    Returns
    -------
    scipy.sparse.csr_array of shape (n, n)
        The diagonal is 0.
    """
    with stage("affinity"):
        n, k = neighbors.indices.shape
        columns = neighbors.indices.astype(np.int32, copy=False).ravel()
        weights = neighbors.similarities.ravel()
        if weights.min(initial=1) > 0:
            row_ends = np.arange(0, n * k + 1, k, dtype=np.int32 if n * k < 2**31 else np.int64)
        else:
            similar = weights > 0
            row_ends = np.concatenate([[0], np.cumsum(similar.reshape(n, k).sum(axis=1))]).astype(np.int32)
            weights, columns = weights[similar], columns[similar]
        return _symmetric(sparse.csr_array((weights, columns, row_ends), shape=(n, n)))


def affinity_from_knn_graph(
    knn_graph: Any, n_samples: int, *, kind: str = "similarity", dtype: Any = np.float32
) -> sparse.csr_array:
    """Compute the symmetric affinity of a neighbor graph that was passed in.

    Parameters
    ----------
    knn_graph : scipy.sparse matrix or array of shape (n_samples, n_samples)
        Non-negative, finite values; symmetric or not. The diagonal is dropped.
    n_samples : int
        Number of samples.
    kind : {"similarity", "cosine_distance", "distance"}, default="similarity"
        What the stored values are. A cosine distance d is turned into 1 - d, any other distance into
        exp(-d^2 / 2 s^2) with s the median of the positive stored distances. A stored distance of zero is an
        edge between equal points.
    dtype : dtype, default=numpy.float32
        Precision of the result.

    Returns
    -------
    scipy.sparse.csr_array of shape (n_samples, n_samples)
        The larger of the two entries for every pair.
    """
    check_choice(kind, "knn_graph_kind", GRAPH_KINDS)
    graph = _checked_graph(knn_graph, n_samples).astype(dtype, copy=True)
    if kind == "cosine_distance":
        graph.data = np.maximum(1 - graph.data, 0)
    elif kind == "distance":
        scale = np.median(graph.data[graph.data > 0]) if (graph.data > 0).any() else 1.0
        graph.data = np.exp(-((graph.data / scale) ** 2) / 2).astype(dtype)
    rows = np.repeat(np.arange(n_samples), np.diff(graph.indptr))
    graph.data[rows == graph.indices] = 0
    graph.eliminate_zeros()
    return _symmetric(graph)


def normalized(affinity: sparse.csr_array, degree: FloatArray, *, in_place: bool = False) -> sparse.csr_array:
    """Compute the normalized graph S = D^-1/2 A D^-1/2.

    Parameters
    ----------
    affinity : scipy.sparse.csr_array of shape (n, n)
        The symmetric graph A.
    degree : ndarray of shape (n,)
        The diagonal of D.
    in_place : bool, default=False
        Whether ``affinity`` is changed, which saves memory.

    Returns
    -------
    scipy.sparse.csr_array of shape (n, n)
    """
    scale = (1 / np.sqrt(degree)).astype(affinity.dtype)
    data = affinity.data if in_place else np.empty_like(affinity.data)
    for rows in row_blocks(len(degree), _ROWS_PER_BLOCK):
        entries = slice(affinity.indptr[rows.start], affinity.indptr[rows.stop])
        np.multiply(affinity.data[entries], scale[affinity.indices[entries]], out=data[entries])
        data[entries] *= np.repeat(scale[rows], np.diff(affinity.indptr[rows.start : rows.stop + 1]))
    return sparse.csr_array((data, affinity.indices, affinity.indptr), shape=affinity.shape)


def normalized_graph(neighbors: Neighbors, k: int) -> Graph:
    """Compute the normalized graph of the most similar neighbors.

    Parameters
    ----------
    neighbors : Neighbors
        At least ``k`` neighbors per sample.
    k : int
        Number of neighbors per sample to use.

    Returns
    -------
    scipy.sparse.csr_array of shape (n, n), or OrderedGraph
        The latter if the neighbors are in an order.
    """
    affinity = symmetric_affinity(neighbors.first(k))
    return in_order(normalized(affinity, degrees(affinity), in_place=True), neighbors.order)


def degrees(affinity: sparse.csr_array) -> FloatArray:
    """Compute the degrees D = A 1; nodes without neighbors get 1, so that they keep their own label.

    Parameters
    ----------
    affinity : scipy.sparse.csr_array of shape (n, n)
        The symmetric graph A.

    Returns
    -------
    ndarray of float64, shape (n,)
    """
    total = np.zeros(affinity.shape[0])
    for rows in row_blocks(len(total), _ROWS_PER_BLOCK):  # what is summed is copied to float64 first
        ends = affinity.indptr[rows.start : rows.stop + 1]
        has_entries = np.diff(ends) > 0
        data, starts = affinity.data[ends[0] : ends[-1]], ends[:-1][has_entries] - ends[0]
        total[rows][has_entries] = np.add.reduceat(data, starts, dtype=np.float64) if len(data) else 0
    total[total <= 0] = 1.0
    return total


@dataclass(frozen=True, slots=True, eq=False)
class OrderedGraph:
    """A graph whose nodes are in an order in which neighbors are near each other in memory.

    Products with large graphs are several times faster in such an order.

    Attributes
    ----------
    matrix : scipy.sparse.csr_array of shape (n, n)
        The graph with sample ``order[i]`` as node i.
    order : ndarray of int64, shape (n,)
        The order.
    """

    matrix: sparse.csr_array
    order: IntArray

    def by_sample(self) -> sparse.csr_array:
        """Renumber the nodes such that node i is sample i.

        Returns
        -------
        scipy.sparse.csr_array of shape (n, n)
        """
        rows = self.matrix[np.argsort(self.order)]
        samples = self.order.astype(rows.indices.dtype)
        graph = sparse.csr_array((rows.data, samples[rows.indices], rows.indptr), shape=rows.shape)
        graph.sort_indices()
        return graph


Graph: TypeAlias = "sparse.csr_array | OrderedGraph"


def in_order(matrix: sparse.csr_array, order: IntArray | None) -> Graph:
    """Attach an order to a graph, if there is one.

    Parameters
    ----------
    matrix : scipy.sparse.csr_array of shape (n, n)
        The graph.
    order : ndarray of int64, shape (n,), or None
        The sample of every node; ``None`` if node i is sample i.

    Returns
    -------
    scipy.sparse.csr_array of shape (n, n), or OrderedGraph
    """
    return matrix if order is None else OrderedGraph(matrix, order)


def by_sample(graph: Graph) -> sparse.csr_array:
    """Number the nodes of a graph as the samples.

    Parameters
    ----------
    graph : scipy.sparse.csr_array of shape (n, n), or OrderedGraph
        The graph.

    Returns
    -------
    scipy.sparse.csr_array of shape (n, n)
    """
    return graph.by_sample() if isinstance(graph, OrderedGraph) else graph


def _symmetric(graph: sparse.csr_array) -> sparse.csr_array:
    """The elementwise maximum of a graph and its transpose, in blocks of rows.

    scipy's own maximum would need memory for twice the entries of both, and for the result. The transpose of
    a large graph is made in parts.
    """
    n = graph.shape[0]
    counts = np.zeros(n, dtype=np.int64)
    data = np.empty(2 * graph.nnz, dtype=graph.dtype)
    columns = np.empty(2 * graph.nnz, dtype=graph.indices.dtype)
    end = 0
    for rows in row_blocks(n, _ROWS_PER_BLOCK):
        if rows.start % _TRANSPOSED_ROWS == 0:
            wide = slice(rows.start, min(rows.start + _TRANSPOSED_ROWS, n))
            transposed = (graph if wide.stop - wide.start == n else graph[:, wide]).T.tocsr()  # sorts, too
        part = graph[rows]
        part.sort_indices()  # scipy merges sorted rows several times faster
        part = part.maximum(transposed[rows.start - wide.start : rows.stop - wide.start]).tocsr()
        begin, end = end, end + part.nnz
        data[begin:end], columns[begin:end] = part.data, part.indices
        counts[rows] = np.diff(part.indptr)
    data.resize(end, refcheck=False)  # in place: what was not written has never been in memory
    columns.resize(end, refcheck=False)
    row_ends = np.concatenate([[0], np.cumsum(counts)])
    row_ends = row_ends.astype(np.int32) if end < 2**31 else row_ends
    symmetric = sparse.csr_array((data, columns, row_ends), shape=graph.shape)
    symmetric.has_canonical_format = True
    return symmetric


def _checked_graph(knn_graph: Any, n_samples: int) -> sparse.csr_array:
    if not sparse.issparse(knn_graph):
        raise must_be("knn_graph", "a scipy sparse matrix", type(knn_graph).__name__)
    if knn_graph.shape != (n_samples, n_samples):
        raise must_be("knn_graph", f"of shape ({n_samples}, {n_samples})", f"shape {knn_graph.shape}")
    if knn_graph.dtype.kind not in "fiub":
        raise must_be("knn_graph", "real numbers", f"dtype {knn_graph.dtype}")
    graph = sparse.csr_array(knn_graph)
    if not np.isfinite(graph.data).all():
        bad = int((~np.isfinite(graph.data)).sum())
        raise InvalidInputError(
            f"The 'knn_graph' parameter must be finite. Got {bad} NaN or infinite weights."
        )
    if graph.nnz and graph.data.min() < 0:
        raise must_be("knn_graph", "of non-negative weights", float(graph.data.min()))
    graph.sum_duplicates()
    return graph
