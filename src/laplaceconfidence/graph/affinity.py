"""The symmetric, weighted graph of neighbors and its normalized form."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.graph.neighbors import Neighbors
from laplaceconfidence.stages import stage
from laplaceconfidence.validation import check_choice, must_be

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
        weights = np.maximum(neighbors.similarities, 0).ravel()
        columns = neighbors.indices.astype(np.int32).ravel()
        if (similar := weights > 0).all():
            row_ends = np.arange(0, n * k + 1, k, dtype=np.int32)
        else:
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


def normalized(affinity: sparse.csr_array, degree: FloatArray) -> sparse.csr_array:
    """Compute the normalized graph S = D^-1/2 A D^-1/2.

    Parameters
    ----------
    affinity : scipy.sparse.csr_array of shape (n, n)
        The symmetric graph A.
    degree : ndarray of shape (n,)
        The diagonal of D.

    Returns
    -------
    scipy.sparse.csr_array of shape (n, n)
    """
    scale = (1 / np.sqrt(degree)).astype(affinity.dtype)
    data = affinity.data * scale[affinity.indices]
    data *= np.repeat(scale, np.diff(affinity.indptr))
    return sparse.csr_array((data, affinity.indices, affinity.indptr), shape=affinity.shape)


def normalized_graph(neighbors: Neighbors, k: int) -> sparse.csr_array:
    """Compute the normalized graph of the most similar neighbors.

    Parameters
    ----------
    neighbors : Neighbors
        At least ``k`` neighbors per sample.
    k : int
        Number of neighbors per sample to use.

    Returns
    -------
    scipy.sparse.csr_array of shape (n, n)
    """
    affinity = symmetric_affinity(neighbors.first(k))
    return normalized(affinity, degrees(affinity))


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
    total = np.asarray(affinity.sum(axis=1, dtype=np.float64)).ravel()
    total[total <= 0] = 1.0
    return total


def _symmetric(graph: sparse.csr_array) -> sparse.csr_array:
    transposed = graph.T.tocsr()  # also sorts the columns of every row
    return graph.maximum(transposed).tocsr()


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
