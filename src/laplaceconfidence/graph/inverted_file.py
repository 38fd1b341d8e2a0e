"""Approximate neighbors through an inverted file (IVF) whose recall is measured.

Samples are divided into cells of constant size, and a query is compared with the samples of the nearest cells
only, so that the time per sample hardly depends on the number of samples. What makes this fast on a CPU:

- The queries are the samples themselves, in the order of their cells: the nearest cells of a query are sought
  among those near its own cell, and what a query reads is still in the cache from the one before.
- Cells are scanned by 4-bit product codes of the principal components (PQ fast scan), and only the candidates
  that are found there are compared in all features. A code has two components, or one where that would
  take too many candidates, as on features without structure.
- Number of cells and number of candidates per query are the cheapest ones that reach the target recall on a
  sample of queries, for which the exact neighbors are computed.

If codes do not reach it, the cells are scanned in all features.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import FloatArray, IntArray, row_blocks
from laplaceconfidence.features.scale import principal_axes, project
from laplaceconfidence.graph.cells import NEARBY, Cells, divide, nearby_cells, nearest_cells
from laplaceconfidence.graph.list_scan import (
    FINER_FROM,
    MOST_CANDIDATES,
    coded_lists,
    inner_products,
    most_similar,
    nanoseconds,
    scan_lists,
    vector_lists,
)
from laplaceconfidence.graph.product_codes import AXES_SAMPLE, CODED_FROM, ProductCodes, evenly
from laplaceconfidence.graph.recall import Effort, ExactNeighbors, without_self
from laplaceconfidence.stages import stage
from laplaceconfidence.threads import limited_threads

WIDE = 128  # features; wider ones are divided into cells along this many principal axes
QUERIES_AT_ONCE = 4_096
TUNING_QUERIES, RECALL_QUERIES = 256, 128  # to choose the effort on, and to measure the recall on
CELL_SIZE = 256
EXACT_NANOSECONDS = 0.033  # of an exact search, per pair of samples and feature


class InvertedFile:
    """Samples in the order of their cells, with an index.

    Parameters
    ----------
    points : ndarray of float32, shape (n, d)
        Unit vectors, in the order of their cells.
    coarse : ndarray of float32, shape (n, d')
        What was divided into cells, in the same order: the points, or their first principal components.
    cells : Cells
        The cells.
    axes_per_code : {1, 2} or None
        Number of principal components of ``coarse`` per code; ``None`` scans the points themselves.
    """

    def __init__(
        self, points: FloatArray, coarse: FloatArray, cells: Cells, axes_per_code: int | None
    ) -> None:
        self.points, self.coarse, self.cells = points, coarse, cells
        self.codes = None if axes_per_code is None else ProductCodes.fitted(coarse, axes_per_code)
        self.index: Any
        if self.codes is None:
            self.index = vector_lists(points, cells.sizes, faiss.METRIC_L2)
        else:
            self.index = coded_lists(self.codes, self.codes.encoded(coarse), cells.sizes)
        self.nearby = nearby_cells(cells.centers, cells.centers, NEARBY)

    def _scanned(self, rows: IntArray) -> FloatArray:
        return self.points[rows] if self.codes is None else self.coarse[rows] @ self.codes.axes

    def search(self, rows: IntArray, n_cells: int, n_candidates: int) -> tuple[IntArray, FloatArray]:
        """Find samples that are similar to some of the samples.

        Parameters
        ----------
        rows : ndarray of int64, shape (m,)
            Positions of the queries in ``points``, ascending.
        n_cells : int
            Number of cells per query.
        n_candidates : int
            Number of samples per query.

        Returns
        -------
        candidates : ndarray of int64, shape (m, n_candidates)
            Positions in ``points``, nearest first by what was scanned; -1 where fewer were found.
        similarities : ndarray of float32, shape (m, n_candidates)
            Inner products in all features, -inf where ``candidates`` are -1.
        """
        probed = self._nearest_cells(rows, n_cells)
        _, candidates = scan_lists(self.index, self._scanned(rows), probed, n_candidates)
        return candidates, inner_products(self.points[rows], self.points, candidates)

    def _nearest_cells(self, rows: IntArray, n_cells: int) -> IntArray:
        return nearest_cells(self.coarse[rows], self._cell_of(rows), self.cells.centers, self.nearby, n_cells)

    def _cell_of(self, rows: IntArray) -> IntArray:
        return np.searchsorted(self.cells.starts, rows, side="right") - 1

    def search_all(self, k: int, effort: Effort, n_threads: int) -> tuple[NDArray[np.int32], FloatArray]:
        """Find the most similar other samples of every sample.

        Parameters
        ----------
        k : int
            Number of neighbors per sample.
        effort : Effort
            What every sample is compared with.
        n_threads : int
            Number of threads; the result does not depend on it.

        Returns
        -------
        indices : ndarray of int32, shape (n, k)
            Positions of the neighbors in ``points``, most similar first; -1 where fewer were found.
        similarities : ndarray of float32, shape (n, k)
            Inner products, -inf where ``indices`` are -1.
        """
        n = len(self.points)
        indices = np.empty((n, k), dtype=np.int32)  # half the memory of int64
        similarities = np.empty((n, k), dtype=np.float32)

        def search_block(block: slice) -> int:
            rows = np.arange(block.start, block.stop)
            found = most_similar(*self.search(rows, effort.n_cells, effort.n_candidates), k + 1)
            indices[block], similarities[block] = without_self(rows, *found)
            return len(rows)

        with (
            stage("neighbors", total=n) as advance,
            limited_threads(1),
            ThreadPoolExecutor(n_threads, initializer=faiss.omp_set_num_threads, initargs=(1,)) as pool,
        ):
            for n_found in pool.map(search_block, row_blocks(n, QUERIES_AT_ONCE)):
                advance(n_found)
        return indices, similarities

    def fitting_effort(self, target: float, exact: ExactNeighbors, longest: float = np.inf) -> Effort:
        """Choose the numbers of cells and candidates that reach a recall in the shortest time.

        Parameters
        ----------
        target : float
            The recall to reach.
        exact : ExactNeighbors
            Queries to measure the recall on.
        longest : float, default=inf
            Nanoseconds per query above which no more cells are tried.

        Returns
        -------
        Effort
            The one of highest recall if none reaches ``target``.
        """
        rows, k = exact.rows, exact.neighbors.shape[1]
        n, most = len(self.points), k + 1 if self.codes is None else MOST_CANDIDATES * (k + 1)
        tried = min(n, most, 4 * (k + 1))  # candidates; more only if these do not suffice
        best: Effort | None = None
        n_cells, before, n_dearer = self._fewest_cells(exact, target), -1.0, 0
        while True:
            candidates, similar = self.search(rows, n_cells, tried)
            hits = (similar >= exact.accepted) & (candidates != rows[:, None])
            recall = np.minimum(hits.cumsum(axis=1), k).mean(axis=0) / k  # by the number of candidates
            if recall[-1] < target and tried < min(n, most):
                tried = min(n, most, 2 * tried)
                continue
            enough = int(np.clip(np.searchsorted(recall, target) + 1, k + 1, tried))
            one = Effort(n_cells, enough, float(recall[enough - 1]), self._nanoseconds(n_cells, enough))
            best = one if best is None else max(best, one, key=lambda effort: effort.merit(target))
            has_reached = best.recall >= target
            n_dearer = 0 if one is best else n_dearer + 1
            limit = best.nanoseconds if has_reached else longest
            # More cells do not help where codes cannot tell neighbors from other samples.
            codes_fail = self.codes is not None and n_cells > 32 and recall[-1] < before + 0.002
            is_over = n_cells == len(self.cells) or self._nanoseconds(n_cells, k + 1) >= limit
            is_over |= has_reached and n_dearer == 2  # more cells hardly reduce the candidates any more
            if is_over or (codes_fail and not has_reached):
                return best
            before = float(recall[-1])
            n_cells = min(n_cells + max(1, n_cells // 4), len(self.cells))
            if n_cells > self.nearby.shape[1]:
                centers = self.cells.centers
                self.nearby = nearby_cells(centers, centers, 4 * self.nearby.shape[1])

    def _fewest_cells(self, exact: ExactNeighbors, target: float) -> int:
        """The number of nearest cells in which a share of the neighbors is, or all nearby cells."""
        nearest = self._nearest_cells(exact.rows, self.nearby.shape[1])
        neighbor_cells = self._cell_of(exact.neighbors)
        are_in = (nearest[:, :, None] == neighbor_cells[:, None, :]).sum(axis=2)
        shares = are_in.sum(axis=0).cumsum() / neighbor_cells.size
        return min(int(np.searchsorted(shares, target)) + 1, len(shares))

    def _nanoseconds(self, n_cells: int, n_candidates: int) -> float:
        """Rough time of a query."""
        sizes, d = self.cells.sizes, self.points.shape[1]
        n_scanned = n_cells * int((sizes**2).sum()) / int(sizes.sum())
        width = d if self.codes is None else self.codes.n_codes
        return nanoseconds(n_cells, n_scanned, width, n_candidates, d, coded=self.codes is not None)


def approximate_neighbors(
    points: FloatArray,
    k: int,
    target_recall: float,
    rng: np.random.Generator,
    *,
    n_threads: int,
    at_any_cost: bool,
) -> tuple[NDArray[np.int32], FloatArray, float, IntArray] | None:
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
    n_threads : int
        Number of threads; the result does not depend on it.
    at_any_cost : bool
        Whether to search even if an exact search would be faster, as it is if the samples have no structure.

    Returns
    -------
    indices : ndarray of int32, shape (n, k)
        Positions of the neighbors in ``order``, most similar first.
    similarities : ndarray of float32, shape (n, k)
        Inner products.
    recall : float
        The measured recall.
    order : ndarray of int64, shape (n,)
        The samples in the order of their cells; the other arrays have their rows in it.
    """
    n, d = points.shape
    longest = np.inf if at_any_cost else EXACT_NANOSECONDS * n * d
    # The chosen effort is a little better on the queries it was chosen on than on others.
    target = target_recall + 0.2 * (1 - target_recall)
    with stage("index"):
        coarse = points
        if d > WIDE:
            mean, axes, _ = principal_axes(evenly(points, AXES_SAMPLE), min(WIDE, n))
            coarse = project(points, mean, axes)
        cells = divide(coarse, CELL_SIZE, int(rng.integers(2**31 - 1)))
        points = points[cells.order]
        coarse = points if d <= WIDE else coarse[cells.order]
        drawn = rng.choice(n, size=min(TUNING_QUERIES + RECALL_QUERIES, n), replace=False)
        parts = np.split(drawn, [len(drawn) * TUNING_QUERIES // (TUNING_QUERIES + RECALL_QUERIES)])
        tuning, check = (ExactNeighbors.search(points, np.sort(part), k) for part in parts)
        built, effort = _fitting_index(points, coarse, cells, (target_recall, target), tuning, longest)
    if not at_any_cost and (effort.recall < target_recall or effort.nanoseconds > longest):
        return None
    indices, similarities = built.search_all(k, effort, n_threads)
    recall = float((similarities[check.rows] >= check.accepted).mean())
    return indices, similarities, recall, cells.order


def _fitting_index(
    points: FloatArray,
    coarse: FloatArray,
    cells: Cells,
    targets: tuple[float, float],
    exact: ExactNeighbors,
    longest: float,
) -> tuple[InvertedFile, Effort]:
    """The index that reaches a recall in the shortest time, and how.

    A finer one is only built if the one before needs many candidates or misses the lower of the targets.
    """
    required, wanted = targets
    many = FINER_FROM * (exact.neighbors.shape[1] + 1)
    best: tuple[InvertedFile, Effort] | None = None
    for axes_per_code in (2, 1, None) if len(points) >= CODED_FROM else (None,):
        if (
            best is not None
            and best[1].recall >= required
            and (axes_per_code is None or best[1].n_candidates < many)
        ):
            break
        built = InvertedFile(points, coarse, cells, axes_per_code)
        effort = built.fitting_effort(wanted, exact, longest)
        if best is None or effort.merit(wanted) > best[1].merit(wanted):
            best = built, effort
    assert best is not None
    return best
