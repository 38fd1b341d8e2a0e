"""Labels propagated over the graphs, with folds held out.

Propagation is linear, so that the labels of each fold are propagated once: the solution with two folds held
out is the sum over the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from laplaceconfidence.arrays import FloatArray, IntArray, row_blocks, sized_row_blocks
from laplaceconfidence.confidence.held_out_folds import HeldOutFolds
from laplaceconfidence.confidence.noise_aware.settings import SETTINGS
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.solve.conjugate_gradient import conjugate_gradient
from laplaceconfidence.solve.propagation import clipped_softmax

PROPAGATION = SETTINGS.propagation
_ENTRIES_AT_ONCE = 1 << 18  # about a megabyte, which the cache holds
_COLUMNS_AT_ONCE = 32  # more no longer fit into the cache and are slower


@dataclass(slots=True)
class Propagator:
    """Solves the propagation, and keeps the largest residual.

    Attributes
    ----------
    n_jobs : int or None
        Threads.
    residual : float
        Largest true relative residual of all columns so far.
    """

    n_jobs: int | None = None
    residual: float = 0.0

    def __call__(
        self, graph: sparse.csr_array, columns: FloatArray, alpha: float = PROPAGATION.alpha
    ) -> FloatArray:
        """(I - alpha S)^-1 applied to columns (n, m), some of them at a time."""
        n, m = columns.shape
        result = np.empty((n, m), dtype=np.float32)
        for part in row_blocks(m, _COLUMNS_AT_ONCE):
            solution = conjugate_gradient(
                graph,
                alpha,
                columns[:, part],
                tol=PROPAGATION.tolerance,
                max_iter=PROPAGATION.most_iterations,
                n_jobs=self.n_jobs,
            )
            result[:, part] = solution.values
            self.residual = max(self.residual, float(solution.residuals.max()))
        return result


def log_shares(solution: FloatArray) -> FloatArray:
    """Logarithms of the solution's rows, clipped at 0, divided by their sum, plus a floor."""
    result = np.empty_like(solution)
    for rows in sized_row_blocks(len(solution), solution[:1].size, _ENTRIES_AT_ONCE):
        shares = np.maximum(solution[rows], 0)
        shares /= np.maximum(shares.sum(axis=-1, keepdims=True), PROPAGATION.least_sum)
        shares += PROPAGATION.floor / shares.shape[-1]
        np.log(shares, out=result[rows])
    return result


def propagate_folds(
    graph: sparse.csr_array, codes: IntArray, n_classes: int, folds: HeldOutFolds, propagate: Propagator
) -> FloatArray:
    """(n, folds, C) the labels of every fold, propagated by themselves."""
    n = len(codes)
    labeled = np.flatnonzero(codes != MISSING)
    by_fold = np.zeros((n, folds.n_folds, n_classes), dtype=np.float32)
    by_fold[labeled, folds.folds[labeled], codes[labeled]] = 1
    return propagate(graph, by_fold.reshape(n, -1)).reshape(by_fold.shape)


def log_shares_without_pairs(by_fold: FloatArray, own_folds: IntArray) -> FloatArray:
    """(n, folds, C) log shares with the sample's fold and each fold held out; unused at its own fold."""
    others = by_fold.sum(axis=1) - by_fold[np.arange(len(by_fold)), own_folds]
    return log_shares(others[:, None, :] - by_fold)


def propagate_targets(graph: sparse.csr_array, targets: FloatArray, propagate: Propagator) -> FloatArray:
    """(n, folds, C) log shares of soft targets (n, folds, C), propagated separately for every fold."""
    return log_shares(propagate(graph, targets.reshape(len(targets), -1)).reshape(targets.shape))


def close_votes(
    graph: sparse.csr_array, codes: IntArray, n_classes: int, propagate: Propagator
) -> FloatArray:
    """(n, C) softmax of all labels propagated over a graph of few neighbors, the own label included.

    This is the paper's estimate at a shorter range.
    """
    labeled = np.flatnonzero(codes != MISSING)
    labels = np.zeros((len(codes), n_classes), dtype=np.float32)
    labels[labeled, codes[labeled]] = 1
    return clipped_softmax(propagate(graph, labels, PROPAGATION.votes_alpha))
