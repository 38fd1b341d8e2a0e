"""Propagation of labels over the graphs, with folds held out.

Propagation is linear, so the labels of each fold are propagated only once: the solution with two folds held
out is the sum of the solutions of the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray, row_blocks, sized_row_blocks
from laplaceconfidence.confidence.held_out_folds import HeldOutFolds
from laplaceconfidence.confidence.noise_aware.settings import SETTINGS
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.graph.affinity import Graph, OrderedGraph
from laplaceconfidence.solve.conjugate_gradient import conjugate_gradient
from laplaceconfidence.solve.propagation import clipped_softmax

PROPAGATION = SETTINGS.propagation
_ENTRIES_AT_ONCE = 1 << 18  # about a megabyte, which fits in the cache
_COLUMNS_AT_ONCE = 32  # more would not fit in the cache and be slower


@dataclass(slots=True)
class Propagator:
    """Propagates columns over a graph, and records the largest residual.

    Attributes
    ----------
    n_jobs : int or None
        Number of threads.
    residual : float
        Largest relative residual of all columns so far.
    """

    n_jobs: int | None = None
    residual: float = 0.0

    def __call__(
        self,
        graph: Graph,
        columns: FloatArray,
        alpha: float = PROPAGATION.alpha,
        *,
        in_place: bool = False,
    ) -> FloatArray:
        """Solve (I - alpha S) X = B.

        Parameters
        ----------
        graph : scipy.sparse.csr_array of shape (n, n), or OrderedGraph
            The normalized graph S.
        columns : ndarray of shape (n, m)
            The right-hand sides B.
        alpha : float, default=0.5
            How far labels are propagated.
        in_place : bool, default=False
            Whether the solution replaces ``columns``, which saves memory.

        Returns
        -------
        ndarray of float32, shape (n, m)
        """
        n, m = columns.shape
        result = columns if in_place else np.empty((n, m), dtype=np.float32)
        matrix, order = (
            (graph.matrix, graph.order) if isinstance(graph, OrderedGraph) else (graph, slice(None))
        )
        n_parts = -(-m // _COLUMNS_AT_ONCE)
        for part in row_blocks(m, -(-m // max(1, n_parts))):  # all of about the same width
            solution = conjugate_gradient(
                matrix,
                alpha,
                columns[order, part],
                tol=PROPAGATION.tolerance,
                max_iter=PROPAGATION.most_iterations,
                true_residuals=False,
                n_jobs=self.n_jobs,
            )
            result[order, part] = solution.values
            self.residual = max(self.residual, float(solution.residuals.max()))
        return result


def log_shares(solution: FloatArray, *, in_place: bool = False) -> FloatArray:
    """Logarithms of the shares of the classes: a solution clipped at 0 and divided by its sum, plus a floor.

    Parameters
    ----------
    solution : ndarray of shape (n, C) or (n, folds, C)
        Propagated labels.
    in_place : bool, default=False
        Whether the result replaces ``solution``, which saves memory.

    Returns
    -------
    ndarray of shape (n, C) or (n, folds, C)
    """
    result = solution if in_place else np.empty_like(solution)
    for rows in sized_row_blocks(len(solution), solution[:1].size, _ENTRIES_AT_ONCE):
        shares = np.maximum(solution[rows], 0)
        shares /= np.maximum(shares.sum(axis=-1, keepdims=True), PROPAGATION.least_sum)
        shares += PROPAGATION.floor / shares.shape[-1]
        np.log(shares, out=result[rows])
    return result


def propagate_folds(
    graph: Graph, codes: IntArray, n_classes: int, folds: HeldOutFolds, propagate: Propagator
) -> FloatArray:
    """Propagate the labels of every fold separately.

    Parameters
    ----------
    graph : scipy.sparse.csr_array of shape (n, n), or OrderedGraph
        The normalized graph.
    codes : ndarray of shape (n,)
        Labels, ``MISSING`` where there is none.
    n_classes : int
        Number of classes.
    folds : HeldOutFolds
        Folds of the labels.
    propagate : Propagator
        Solves the propagation.

    Returns
    -------
    ndarray of shape (n, folds, C)
    """
    n = len(codes)
    labeled = np.flatnonzero(codes != MISSING)
    by_fold = np.zeros((n, folds.n_folds, n_classes), dtype=np.float32)
    by_fold[labeled, folds.folds[labeled], codes[labeled]] = 1
    return propagate(graph, by_fold.reshape(n, -1), in_place=True).reshape(by_fold.shape)


def log_shares_without_pairs(by_fold: FloatArray, own_folds: IntArray) -> FloatArray:
    """Log shares with two folds held out: that of the sample and each other one.

    Parameters
    ----------
    by_fold : ndarray of shape (n, folds, C)
        The result of ``propagate_folds``.
    own_folds : ndarray of shape (n,)
        The fold of every sample.

    Returns
    -------
    ndarray of shape (n, folds, C)
        The entries at the sample's own fold are not meaningful.
    """
    others = by_fold.sum(axis=1) - by_fold[np.arange(len(by_fold)), own_folds]
    return log_shares(others[:, None, :] - by_fold, in_place=True)


def propagate_targets(graph: Graph, targets: FloatArray, propagate: Propagator) -> FloatArray:
    """Log shares of soft targets, which are propagated separately for every held-out fold.

    Parameters
    ----------
    graph : scipy.sparse.csr_array of shape (n, n), or OrderedGraph
        The normalized graph.
    targets : ndarray of shape (n, folds, C)
        Soft targets with each fold held out.
    propagate : Propagator
        Solves the propagation.

    Returns
    -------
    ndarray of shape (n, folds, C)
    """
    solution = propagate(graph, targets.reshape(len(targets), -1)).reshape(targets.shape)
    return log_shares(solution, in_place=True)


def close_votes(graph: Graph, codes: IntArray, n_classes: int, propagate: Propagator) -> FloatArray:
    """Softmax of all labels propagated over a graph, the sample's own label included.

    This is the estimate of ``LaplaceConfidence`` with a smaller alpha.

    Parameters
    ----------
    graph : scipy.sparse.csr_array of shape (n, n), or OrderedGraph
        A normalized graph of few neighbors.
    codes : ndarray of shape (n,)
        Labels, ``MISSING`` where there is none.
    n_classes : int
        Number of classes.
    propagate : Propagator
        Solves the propagation.

    Returns
    -------
    ndarray of shape (n, C)
        Rows sum to 1.
    """
    labeled = np.flatnonzero(codes != MISSING)
    labels = np.zeros((len(codes), n_classes), dtype=np.float32)
    labels[labeled, codes[labeled]] = 1
    return clipped_softmax(propagate(graph, labels, PROPAGATION.votes_alpha))
