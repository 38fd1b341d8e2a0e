"""Approximate neighbors through an inverted file (IVF) whose recall is measured.

Samples are divided into cells around centers, and a query is compared with the samples of the nearest cells
only. Three things make this fast on a CPU: queries are processed in the order of their cells, so that a cell
stays in the cache; wide features are searched along their first principal axes, and only the candidates found
there are compared in all features; and the number of cells per query is the smallest one that reaches the
target recall on a sample of queries, for which the exact neighbors are computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import faiss
import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray, row_blocks
from laplaceconfidence.features.scale import principal_axes, project
from laplaceconfidence.stages import stage

WIDE = 128  # features; wider ones are searched along this many principal axes
QUERIES_AT_ONCE = 4_096
RECALL_QUERIES = 256


@dataclass(frozen=True, slots=True)
class InvertedFile:
    """Samples in the order of their cells, with an index.

    Attributes
    ----------
    points : ndarray of float32, shape (n, d)
        Unit vectors.
    coarse : ndarray of float32, shape (n, d')
        What is searched: the points, or their first principal components.
    order : ndarray of int64, shape (n,)
        The original row of every sample.
    index : faiss.IndexIVFFlat
        The index over ``coarse``.
    """

    points: FloatArray
    coarse: FloatArray
    order: IntArray
    index: Any

    @classmethod
    def build(cls, points: FloatArray, n_axes: int | None, seed: int) -> InvertedFile:
        """Divide samples into cells.

        Parameters
        ----------
        points : ndarray of float32, shape (n, d)
            Unit vectors.
        n_axes : int or None
            Number of principal axes to search along; ``None`` searches in all features.
        seed : int
            Seed of the k-means clustering.

        Returns
        -------
        InvertedFile
        """
        coarse = points
        if n_axes is not None:
            mean, axes, _ = principal_axes(points, n_axes)
            coarse = project(points, mean, axes)
        n, d = coarse.shape
        # Finding the nearest cells takes time proportional to n_cells per query, scanning them to n /
        # n_cells.
        n_cells = max(1, int(500 * (n / 50_000) ** 0.6))
        centers = faiss.IndexFlatL2(d)
        index = faiss.IndexIVFFlat(centers, d, n_cells, faiss.METRIC_L2)
        index.cp.niter = 4  # few iterations suffice
        index.cp.max_points_per_centroid = 20
        index.cp.min_points_per_centroid = 1  # faiss prints a warning otherwise
        index.cp.seed = seed
        index.train(coarse)
        cells = centers.search(coarse, 1)[1][:, 0]
        order = np.argsort(cells, kind="stable")
        points = points[order]
        coarse = points if n_axes is None else coarse[order]
        cells = cells[order]
        # Unlike add(), this does not search the cells again.
        index.add_core(n, faiss.swig_ptr(coarse), None, faiss.swig_ptr(cells))
        return cls(points, coarse, order, index)

    def search(self, rows: IntArray, k: int, n_candidates: int) -> tuple[IntArray, FloatArray]:
        """Find the most similar samples among candidates, by the inner product in all features.

        Parameters
        ----------
        rows : ndarray of int64, shape (m,)
            Positions of the queries in ``points``.
        k : int
            Number of samples to return per query.
        n_candidates : int
            Number of candidates per query from the search in ``coarse``.

        Returns
        -------
        indices : ndarray of int64, shape (m, k)
            Positions in ``points``, most similar first.
        similarities : ndarray of float32, shape (m, k)
            Inner products.
        """
        candidates = self.index.search(self.coarse[rows], n_candidates)[1]
        queries = self.points[rows]
        similarities = np.empty(candidates.shape, dtype=np.float32)
        faiss.fvec_inner_products_by_idx(  # type: ignore[attr-defined]  # missing in faiss's own stubs
            faiss.swig_ptr(similarities),
            faiss.swig_ptr(queries),
            faiss.swig_ptr(self.points),
            faiss.swig_ptr(candidates),
            self.points.shape[1],
            len(rows),
            n_candidates,
        )
        if n_candidates > k:
            best = np.argpartition(similarities, n_candidates - k, axis=1)[:, n_candidates - k :]
            candidates, similarities = _take(best, candidates, similarities)
            candidates, similarities = _take(np.argsort(-similarities, axis=1), candidates, similarities)
        return candidates, similarities

    def search_all(self, k: int, n_candidates: int) -> tuple[IntArray, FloatArray]:
        """Find the most similar other samples of every sample.

        Parameters
        ----------
        k : int
            Number of neighbors per sample.
        n_candidates : int
            As in ``search``.

        Returns
        -------
        indices : ndarray of int64, shape (n, k)
            Original rows of the neighbors, most similar first.
        similarities : ndarray of float32, shape (n, k)
            Inner products.
        """
        n = len(self.points)
        indices = np.empty((n, k), dtype=np.int64)
        similarities = np.empty((n, k), dtype=np.float32)
        with stage("neighbors", total=n) as advance:
            for block in row_blocks(n, QUERIES_AT_ONCE):
                rows = np.arange(block.start, block.stop)
                found, similar = without_self(rows, *self.search(rows, k + 1, n_candidates))
                originals = np.where(found >= 0, self.order[found], -1)
                indices[self.order[rows]], similarities[self.order[rows]] = originals, similar
                advance(len(rows))
        return indices, similarities

    def reach(self, target: float, k: int, n_candidates: int, rng: np.random.Generator) -> float:
        """Set the number of cells per query to the smallest one that reaches a recall.

        Parameters
        ----------
        target : float
            The recall to reach.
        k : int
            Number of neighbors per query. The query itself, which is always found, does not count.
        n_candidates : int
            As in ``search``.
        rng : numpy.random.Generator
            Draws the queries.

        Returns
        -------
        float
            The measured recall, which may be below ``target``.
        """
        n = len(self.points)
        rows = np.sort(rng.choice(n, size=min(RECALL_QUERIES, n), replace=False))
        exact = faiss.IndexFlatIP(self.points.shape[1])
        exact.add(self.points)
        # Any point as similar as the k-th true neighbor counts, because duplicates tie.
        similar, found = exact.search(self.points[rows], k + 1)
        accepted = without_self(rows, found, similar)[1][:, -1:] - 1e-6
        cells, recall = 0, 0.0
        while recall < target and cells < self.index.nlist:
            cells = min(max(4, cells + max(2, cells // 4)), self.index.nlist)
            self.index.nprobe = cells
            before = recall
            similar = without_self(rows, *self.search(rows, k + 1, n_candidates))[1]
            recall = float((similar >= accepted).mean())
            if cells > 64 and recall <= before:
                break  # the principal axes, not the cells, limit the recall
        return recall


def approximate_neighbors(
    points: FloatArray, k: int, target_recall: float, rng: np.random.Generator
) -> tuple[IntArray, FloatArray, float, IntArray]:
    """Find approximate neighbors.

    Parameters
    ----------
    points : ndarray of float32, shape (n, d)
        Unit vectors.
    k : int
        Number of neighbors per sample.
    target_recall : float
        Share of the true neighbors to find.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    indices : ndarray of int64, shape (n, k)
        Rows of the neighbors, most similar first.
    similarities : ndarray of float32, shape (n, k)
        Inner products.
    recall : float
        The measured recall.
    order : ndarray of int64, shape (n,)
        The samples in the order of their cells.
    """
    n, d = points.shape
    seed = int(rng.integers(2**31 - 1))
    # From fast to accurate: along principal axes, then with more candidates, then in all features.
    plans = [(WIDE, 2 * k), (WIDE, 4 * k), (None, k + 1)] if d > WIDE else [(None, k + 1)]
    built: InvertedFile | None = None
    for n_axes, n_candidates in plans:
        n_candidates = min(max(n_candidates, k + 1), n)
        with stage("index"):
            if built is None or n_axes is None:
                built = InvertedFile.build(points, n_axes, seed)
            recall = built.reach(target_recall, k, n_candidates, rng)
        if recall >= target_recall:
            break
    assert built is not None
    return *built.search_all(k, n_candidates), recall, built.order


def without_self(rows: IntArray, indices: IntArray, similarities: FloatArray) -> tuple[IntArray, FloatArray]:
    """Remove the query itself from the samples that were found.

    Parameters
    ----------
    rows : ndarray of shape (m,)
        The queries.
    indices : ndarray of shape (m, k + 1)
        Samples found for every query.
    similarities : ndarray of shape (m, k + 1)
        Their similarities.

    Returns
    -------
    indices : ndarray of shape (m, k)
        Without the query, or without the last sample if duplicates displaced the query.
    similarities : ndarray of shape (m, k)
    """
    kept = indices != rows[:, None]
    kept[kept.all(axis=1), -1] = False
    shape = len(rows), indices.shape[1] - 1
    return indices[kept].reshape(shape), similarities[kept].reshape(shape)


def _take(order: IntArray, *columns: Any) -> tuple[Any, ...]:
    return tuple(np.take_along_axis(column, order, axis=1) for column in columns)
