"""Division of samples into cells of nearly constant size, by two levels of k-means.

With cells of constant size, their number grows with the number of samples. One k-means with that many centers
would take time quadratic in n; a few large regions that are each divided into cells take n sqrt(n) at most,
and the centers of each level are fitted to a sample of bounded size per center.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import faiss
import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray

_REGION_SAMPLE, _REGION_ITERATIONS = 100, 6  # samples per center, and iterations of k-means
_CELL_SAMPLE, _CELL_ITERATIONS = 32, 4
NEARBY = 128  # cells among which the nearest ones of a query are sought, at first
_LARGEST = 4  # times the usual size; larger cells, which copies of one sample form, are cut


@dataclass(frozen=True, slots=True)
class Cells:
    """Samples, grouped by cell.

    Attributes
    ----------
    order : ndarray of int64, shape (n,)
        The samples in the order of their cells; nearby cells follow each other.
    starts : ndarray of int64, shape (n_cells + 1,)
        Cell c has the samples ``order[starts[c]:starts[c + 1]]``.
    centers : ndarray of float32, shape (n_cells, d)
        The center of every cell. Parts of a cell that was cut share one.
    """

    order: IntArray
    starts: IntArray
    centers: FloatArray

    def __len__(self) -> int:
        return len(self.centers)

    @property
    def sizes(self) -> IntArray:
        """Number of samples per cell."""
        return np.diff(self.starts)


def divide(points: FloatArray, size: int, seed: int) -> Cells:
    """Divide samples into cells.

    Parameters
    ----------
    points : ndarray of float32, shape (n, d)
        The samples, C-contiguous.
    size : int
        Usual number of samples per cell.
    seed : int
        Seed of k-means.

    Returns
    -------
    Cells
        None of them is empty.
    """
    n_regions = max(1, int(np.sqrt(len(points) / size) / 2))
    region = _clustered(points, n_regions, _REGION_SAMPLE, _REGION_ITERATIONS, seed)[0]
    by_region = np.argsort(region, kind="stable")
    order, sizes, centers = [], [], []
    for rows in np.split(by_region, np.cumsum(np.bincount(region, minlength=n_regions))[:-1]):
        if not len(rows):
            continue
        n_cells = max(1, round(len(rows) / size))
        cell, found = _clustered(points[rows], n_cells, _CELL_SAMPLE, _CELL_ITERATIONS, seed)
        order.append(rows[np.argsort(cell, kind="stable")])
        sizes.append(np.bincount(cell, minlength=n_cells))
        centers.append(found)
    return _cut(np.concatenate(order), np.concatenate(sizes), np.concatenate(centers), _LARGEST * size)


def nearby_cells(centers: FloatArray, all_centers: FloatArray, n_nearby: int) -> IntArray:
    """Find the nearest cells of some cells, the cell itself included.

    Parameters
    ----------
    centers : ndarray of float32, shape (m, d)
        Centers of the cells.
    all_centers : ndarray of float32, shape (n_cells, d)
        Centers of all cells.
    n_nearby : int
        How many to find; at most all.

    Returns
    -------
    ndarray of int64, shape (m, n_nearby)
        Nearest first.
    """
    return faiss.knn(centers, all_centers, min(n_nearby, len(all_centers)))[1]


def nearest_cells(
    vectors: FloatArray, own: IntArray, centers: FloatArray, nearby: IntArray, n_cells: int
) -> IntArray:
    """Find the nearest cells of samples, among those near their own cell.

    Parameters
    ----------
    vectors : ndarray of float32, shape (m, d)
        The samples, in the order of their cells.
    own : ndarray of int64, shape (m,)
        The rows of ``nearby`` that belong to their cells, ascending.
    centers : ndarray of float32, shape (n_all, d)
        Centers of all cells.
    nearby : ndarray of int64, shape (n_own, n_nearby)
        Cells near the cells of the samples.
    n_cells : int
        How many to find, at most ``n_nearby``.

    Returns
    -------
    ndarray of int64, shape (m, n_cells)
        Nearest first.
    """
    nearest = np.empty((len(vectors), n_cells), dtype=np.int64)
    bounds = [0, *(np.flatnonzero(np.diff(own)) + 1).tolist(), len(own)]
    for start, stop in pairwise(bounds):
        near = nearby[own[start]]
        nearest[start:stop] = near[faiss.knn(vectors[start:stop], centers[near], n_cells)[1]]
    return nearest


def _clustered(
    points: FloatArray, n_centers: int, sample: int, iterations: int, seed: int
) -> tuple[IntArray, FloatArray]:
    """The nearest center of every point, and the centers."""
    if n_centers == 1:
        return np.zeros(len(points), dtype=np.int64), points.mean(axis=0, keepdims=True)
    k_means = faiss.Kmeans(
        points.shape[1],
        n_centers,
        niter=iterations,
        seed=seed,
        max_points_per_centroid=sample,
        min_points_per_centroid=1,  # faiss prints a warning otherwise
    )
    k_means.train(points)
    nearest: IntArray = k_means.index.search(points, 1)[1][:, 0]
    return nearest, np.asarray(k_means.centroids)


def _cut(order: IntArray, sizes: IntArray, centers: FloatArray, largest: int) -> Cells:
    """Drop empty cells, and cut those that have more than ``largest`` samples into equal parts."""
    parts = -(-sizes // largest)  # 0 for an empty cell
    cell = np.repeat(np.arange(len(sizes)), parts)
    part = np.arange(len(cell)) - np.repeat(np.cumsum(parts) - parts, parts)
    ends = (np.cumsum(sizes) - sizes)[cell] + sizes[cell] * (part + 1) // parts[cell]
    return Cells(order, np.concatenate([[0], ends]), np.ascontiguousarray(centers[cell]))
