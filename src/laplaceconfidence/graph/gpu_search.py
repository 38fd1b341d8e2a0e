"""Exact search on a GPU, if faiss sees one: faiss-cpu never does.

Every query is compared with every point, in parts that fit the memory of the device. This was tested with a
stand-in for faiss's functions, and never on a real GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import faiss

from laplaceconfidence.arrays import FloatArray, IntArray

QUERIES_AT_ONCE = 65_536  # points may be copied to the device for each of these parts
MOST_POINTS = 2_000_000  # comparing all pairs of more is expected to take longer than lists on the CPU
MOST_NEIGHBORS = 2_048  # that faiss selects on a GPU
_POINT_BYTES, _QUERY_BYTES = 2**30, 2**28  # on the device at a time

Search = Callable[[FloatArray, int], tuple[FloatArray, IntArray]]


def can_search_on_gpu(n: int, k: int) -> bool:
    """Return whether there is a GPU, and a search on it is expected to be the fastest.

    Parameters
    ----------
    n : int
        Number of points.
    k : int
        Number of points per query.

    Returns
    -------
    bool
    """
    functions = ("get_num_gpus", "StandardGpuResources", "knn_gpu")
    if n > MOST_POINTS or k > MOST_NEIGHBORS or not all(hasattr(faiss, name) for name in functions):
        return False
    n_devices: int = faiss.get_num_gpus()
    return n_devices > 0


def gpu_search(points: FloatArray) -> Search:
    """Prepare the search of points on a GPU.

    Parameters
    ----------
    points : ndarray of float32, shape (n, d)
        The points, C-contiguous.

    Returns
    -------
    callable
        Called with queries and the number of points per query, as the search of a faiss index: it returns
        inner products, largest first, and row numbers.
    """
    with_gpu: Any = faiss  # the stubs of faiss-cpu know no GPU
    resources = with_gpu.StandardGpuResources()

    def search(queries: FloatArray, k: int) -> tuple[FloatArray, IntArray]:
        similarities, found = with_gpu.knn_gpu(
            resources,
            queries,
            points,
            k,
            metric=faiss.METRIC_INNER_PRODUCT,
            vectorsMemoryLimit=_POINT_BYTES,
            queriesMemoryLimit=_QUERY_BYTES,
        )
        return similarities, found

    return search
