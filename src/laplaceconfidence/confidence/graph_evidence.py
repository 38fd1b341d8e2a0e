"""What the neighbors say about every sample's class, in every world.

Propagation is linear, so that the labels of each fold are spread once: the solution from which two folds are
hidden is the sum of the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.cross_fitting import FoldWorlds
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.solve.conjugate_gradient import conjugate_gradient
from laplaceconfidence.solve.propagation import clipped_softmax

ALPHA = 0.5  # short range: generic embeddings want neighbors, not neighbors' neighbors
FAR = 0.9  # over few neighbors, but from one to the next
FLOOR = 0.1  # votes that are spread over all classes, so that a class nobody voted for keeps a share
TOLERANCE = 1e-2  # relative residual; shares are rounded far more coarsely by the floor
_ENTRIES_AT_ONCE = 1 << 18  # about a megabyte, which the cache holds
_COLUMNS_AT_ONCE = 32  # more no longer fit into the cache and are slower


@dataclass(slots=True)
class Spreader:
    """Spreads columns over graphs with some threads, and remembers the largest residual it left."""

    n_jobs: int | None = None
    residual: float = 0.0

    def __call__(self, graph: sparse.csr_array, columns: FloatArray, alpha: float = ALPHA) -> FloatArray:
        """(I - alpha S)^-1 applied to columns (n, m), some of them at a time."""
        n, m = columns.shape
        result = np.empty((n, m), dtype=np.float32)
        for first in range(0, m, _COLUMNS_AT_ONCE):
            part = slice(first, first + _COLUMNS_AT_ONCE)
            solution = conjugate_gradient(
                graph, alpha, columns[:, part], tol=TOLERANCE, max_iter=20, n_jobs=self.n_jobs
            )
            result[:, part] = solution.values
            self.residual = max(self.residual, float(solution.residuals.max()))
        return result


def log_shares(solution: FloatArray) -> FloatArray:
    """Logarithms of the solution's rows, clipped at 0 and brought to sum 1, with a floor under them."""
    result = np.empty_like(solution)
    rows_at_once = max(1, _ENTRIES_AT_ONCE // max(1, solution[:1].size))
    for start in range(0, len(solution), rows_at_once):
        rows = slice(start, start + rows_at_once)
        shares = np.maximum(solution[rows], 0)
        shares /= np.maximum(shares.sum(axis=-1, keepdims=True), 1e-12)
        shares += FLOOR / shares.shape[-1]
        np.log(shares, out=result[rows])
    return result


def spread_folds(
    graph: sparse.csr_array, codes: IntArray, n_classes: int, worlds: FoldWorlds, spread: Spreader
) -> FloatArray:
    """(n, folds, C) the labels of every fold, spread by themselves."""
    n = len(codes)
    heard = np.flatnonzero(codes != MISSING)
    by_fold = np.zeros((n, worlds.n_folds, n_classes), dtype=np.float32)
    by_fold[heard, worlds.folds[heard], codes[heard]] = 1
    return spread(graph, by_fold.reshape(n, -1)).reshape(by_fold.shape)


def far_votes(graph: sparse.csr_array, codes: IntArray, n_classes: int, spread: Spreader) -> FloatArray:
    """(n, C) the paper's estimate at a shorter range: softmax of all labels, spread, its own too."""
    heard = np.flatnonzero(codes != MISSING)
    labels = np.zeros((len(codes), n_classes), dtype=np.float32)
    labels[heard, codes[heard]] = 1
    return clipped_softmax(spread(graph, labels, FAR))


def seen_from_worlds(by_fold: FloatArray, own_folds: IntArray) -> FloatArray:
    """(n, folds, C) log shares without the sample's fold and the world's; meaningless in its own world."""
    heard = by_fold.sum(axis=1) - by_fold[np.arange(len(by_fold)), own_folds]
    return log_shares(heard[:, None, :] - by_fold)


def spread_targets(graph: sparse.csr_array, targets: FloatArray, spread: Spreader) -> FloatArray:
    """(n, folds, C) log shares of soft targets (n, folds, C), spread in every world by itself."""
    return log_shares(spread(graph, targets.reshape(len(targets), -1)).reshape(targets.shape))
