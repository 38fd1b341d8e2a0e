"""Samples in lists: the lists that a query asks are scanned, and what is found is compared in all features.

Lists hold vectors, or 4-bit product codes of them, which are scanned many times as fast (PQ fast scan) and
find candidates only. Searches in memory and in blocks of rows both scan such lists.
"""

from __future__ import annotations

from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import FloatArray, IntArray, row_blocks
from laplaceconfidence.graph.product_codes import ProductCodes

MOST_CANDIDATES = 24  # per neighbor
FINER_FROM = 8  # candidates per neighbor from which on codes of one axis are tried
_ONE_QUERY_AT_A_TIME = 11  # faiss's number for this way to scan, the fastest one for small lists
_ROWS_AT_ONCE = 65_536


def coded_lists(codes: ProductCodes, rows: NDArray[np.uint8], sizes: IntArray) -> Any:
    """Make lists of codes.

    Parameters
    ----------
    codes : ProductCodes
        What the codes stand for.
    rows : ndarray of uint8, shape (n, n_bytes)
        The codes of all samples, in the order of the lists.
    sizes : ndarray of int64, shape (n_lists,)
        Number of samples per list.

    Returns
    -------
    faiss.IndexIVFPQFastScan
        Scores are squared distances.
    """
    width, n_lists = codes.axes.shape[1], len(sizes)
    # faiss's stubs do not know all members.
    index: Any = faiss.IndexIVFPQ(faiss.IndexFlatL2(width), width, n_lists, codes.n_codes, 4)
    index.by_residual = False  # better codes, but one more table per query and list
    faiss.copy_array_to_vector(codes.centroids.ravel(), index.pq.centroids)
    index.is_trained = True
    n_bytes = int(index.coarse_code_size())
    numbers = np.repeat(np.arange(n_lists), sizes)
    for some in row_blocks(len(rows), _ROWS_AT_ONCE):
        number_bytes = numbers[some].astype("<i8").view(np.uint8).reshape(-1, 8)[:, :n_bytes]
        index.add_sa_codes(np.hstack([number_bytes, rows[some]]), np.arange(some.start, some.stop))
    index = faiss.IndexIVFPQFastScan(index, 32)
    index.implem = _ONE_QUERY_AT_A_TIME
    return index


def vector_lists(vectors: FloatArray, sizes: IntArray, metric: int) -> Any:
    """Make lists of vectors.

    Parameters
    ----------
    vectors : ndarray of float32, shape (n, d)
        The vectors of all samples, in the order of the lists.
    sizes : ndarray of int64, shape (n_lists,)
        Number of samples per list.
    metric : int
        ``faiss.METRIC_L2`` or ``faiss.METRIC_INNER_PRODUCT``.

    Returns
    -------
    faiss.IndexIVFFlat
        Scores are squared distances, or inner products.
    """
    width, n_lists = vectors.shape[1], len(sizes)
    index: Any = faiss.IndexIVFFlat(faiss.IndexFlatL2(width), width, n_lists, metric)
    index.is_trained = True
    numbers = np.repeat(np.arange(n_lists), sizes)
    for some in row_blocks(len(vectors), _ROWS_AT_ONCE):
        own = np.ascontiguousarray(vectors[some])
        # Unlike add(), this does not search the lists.
        index.add_core(len(own), faiss.swig_ptr(own), None, faiss.swig_ptr(numbers[some]))
    return index


def scan_lists(
    index: Any, queries: FloatArray, numbers: IntArray, n_candidates: int
) -> tuple[FloatArray, IntArray]:
    """Find the best candidates in given lists; several threads may do so at the same time.

    Parameters
    ----------
    index : faiss.IndexIVF
        The lists.
    queries : ndarray of float32, shape (m, d)
        Queries, as the lists hold samples; for codes, along their axes.
    numbers : ndarray of int64, shape (m, n_lists)
        Lists that every query asks, each of them once, -1 for none.
    n_candidates : int
        Number of candidates per query.

    Returns
    -------
    scores : ndarray of float32, shape (m, n_candidates)
        Best first.
    found : ndarray of int64, shape (m, n_candidates)
        Positions of the candidates in the lists, -1 where there are fewer.
    """
    if numbers.shape[1] > index.nlist:  # faiss reads as many columns as there are lists
        present_first = np.argsort(numbers < 0, axis=1, kind="stable")[:, : index.nlist]
        numbers = np.take_along_axis(numbers, present_first, axis=1)
    queries, numbers = np.ascontiguousarray(queries), np.ascontiguousarray(numbers, dtype=np.int64)
    distances = np.zeros(numbers.shape, dtype=np.float32)  # to the centers, which only other indexes use
    scores = np.empty((len(queries), n_candidates), dtype=np.float32)
    found = np.empty((len(queries), n_candidates), dtype=np.int64)
    index.search_preassigned_c(
        len(queries),
        faiss.swig_ptr(queries),
        n_candidates,
        faiss.swig_ptr(numbers),
        faiss.swig_ptr(distances),
        faiss.swig_ptr(scores),
        faiss.swig_ptr(found),
        False,
        # Not an attribute of the index, which several threads search.
        faiss.SearchParametersIVF(nprobe=numbers.shape[1]),  # type: ignore[call-arg]  # missing in its stubs
    )
    return scores, found


def inner_products(queries: FloatArray, points: FloatArray, candidates: IntArray) -> FloatArray:
    """Compare candidates with queries in all features.

    Parameters
    ----------
    queries : ndarray of float32, shape (m, d)
        The queries.
    points : ndarray of float32, shape (n, d)
        The samples, which may be mapped from the disk.
    candidates : ndarray of int64, shape (m, c)
        Rows of ``points``, -1 for none.

    Returns
    -------
    ndarray of float32, shape (m, c)
        Inner products, -inf where there is no candidate.
    """
    queries, candidates = np.ascontiguousarray(queries), np.ascontiguousarray(candidates)
    similarities = np.empty(candidates.shape, dtype=np.float32)
    faiss.fvec_inner_products_by_idx(  # type: ignore[attr-defined]  # missing in faiss's own stubs
        faiss.swig_ptr(similarities),
        faiss.swig_ptr(queries),
        faiss.swig_ptr(points),
        faiss.swig_ptr(candidates),
        points.shape[1],
        *candidates.shape,
    )
    return similarities


def most_similar(candidates: IntArray, similarities: FloatArray, k: int) -> tuple[IntArray, FloatArray]:
    """Select the most similar candidates of every query; faster than numpy's partition.

    Parameters
    ----------
    candidates : ndarray of int64, shape (m, c)
        The candidates, -1 for none.
    similarities : ndarray of float32, shape (m, c)
        Their similarities, -inf where there is none.
    k : int
        How many to select.

    Returns
    -------
    candidates : ndarray of int64, shape (m, k)
        Most similar first.
    similarities : ndarray of float32, shape (m, k)
    """
    shape = len(candidates), k
    indices, best = np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.float32)
    heap = faiss.float_minheap_array_t()
    heap.nh, heap.k, heap.ids, heap.val = *shape, faiss.swig_ptr(indices), faiss.swig_ptr(best)
    heap.heapify()
    n_candidates = candidates.shape[1]
    heap.addn_with_ids(n_candidates, faiss.swig_ptr(similarities), faiss.swig_ptr(candidates), n_candidates)
    heap.reorder()
    return indices, best


def nanoseconds(
    n_lists: int, n_scanned: float, width: int, n_candidates: int, d: int, *, coded: bool
) -> float:
    """Estimate the time of a query, as measured with AVX-512.

    Parameters
    ----------
    n_lists : int
        Number of lists.
    n_scanned : float
        Number of samples in them.
    width : int
        Number of features that are scanned, or of codes.
    n_candidates : int
        Samples that are compared in all features.
    d : int
        Number of features.
    coded : bool
        Whether codes are scanned.

    Returns
    -------
    float
    """
    per_sample = 0.02 * width if coded else 5 + 0.055 * width
    return float(200 * n_lists + per_sample * n_scanned + (75 + 0.15 * d) * n_candidates)
