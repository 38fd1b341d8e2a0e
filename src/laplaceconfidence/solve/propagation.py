"""Propagation of labels over a graph: the solution of (I - alpha S) Y = Y_given, in chunks of classes.

A node of weight w counts as w copies of the same sample, each a neighbor of the neighbors of the sample and
of the other copies. With W = diag(w), the solution that all copies share is Y = W^-1/2 G, where

    (I - alpha D^-1/2 (W^1/2 A W^1/2 + max(W - I, 0) E) D^-1/2) G = W^1/2 Y_given,

E is the diagonal matrix of the similarities of samples to their copies, and D contains the degrees with all
copies counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from laplaceconfidence.arrays import FloatArray, IntArray, row_blocks
from laplaceconfidence.graph.affinity import degrees, normalized
from laplaceconfidence.solve.conjugate_gradient import conjugate_gradient
from laplaceconfidence.solve.energy import EnergyChange, energy_of_solution, laplacian_energy
from laplaceconfidence.stages import stage

_CLASSES_AT_ONCE = 32  # more would not fit in the cache and be slower
_ROWS_PER_BLOCK = 4_096


@dataclass(frozen=True, slots=True)
class Propagation:
    """The solution, before any scaling, and the state of the solver.

    Attributes
    ----------
    solution : ndarray of shape (n, C)
        The solution for every class.
    degree : ndarray of shape (n,)
        Degrees of the nodes, with all copies counted.
    residuals : ndarray of shape (C,)
        True relative residual per class.
    n_iterations : ndarray of shape (C,)
        Number of iterations per class.
    converged : bool
        Whether every class converged.
    energy : EnergyChange
        Laplacian energy of the given labels and of the solution.
    """

    solution: FloatArray
    degree: FloatArray
    residuals: FloatArray
    n_iterations: IntArray
    converged: bool
    energy: EnergyChange


def propagate_labels(
    affinity: sparse.csr_array,
    labels: IntArray | FloatArray,
    n_classes: int,
    *,
    alpha: float,
    tol: float,
    max_iter: int,
    node_weights: FloatArray | None = None,
    self_similarity: FloatArray | None = None,
    order: IntArray | None = None,
    n_jobs: int | None = None,
) -> Propagation:
    """Propagate labels over a graph.

    Parameters
    ----------
    affinity : scipy.sparse.csr_array of shape (n, n)
        The symmetric graph.
    labels : ndarray of shape (n,) or (n, C)
        Given labels as codes, -1 where a node has none; or soft labels, one weight per class.
    n_classes : int
        Number of classes.
    alpha : float
        How far labels are propagated, in (0, 1).
    tol : float
        Relative residual at which the conjugate gradients stop.
    max_iter : int
        Largest number of iterations.
    node_weights : ndarray of shape (n,) or None, default=None
        Weights of the nodes; ``None`` is 1 for all.
    self_similarity : ndarray of shape (n,) or None, default=None
        Similarity of every node to its copies; ``None`` is 1 for all.
    order : ndarray of shape (n,) or None, default=None
        The sample of every node of the graph; ``None`` if node i is sample i.
    n_jobs : int or None, default=None
        Number of threads.

    Returns
    -------
    Propagation
    """
    dtype = affinity.dtype
    n = len(labels)
    if order is not None:
        found = propagate_labels(
            affinity,
            labels[order],
            n_classes,
            alpha=alpha,
            tol=tol,
            max_iter=max_iter,
            node_weights=None if node_weights is None else node_weights[order],
            self_similarity=None if self_similarity is None else self_similarity[order],
            n_jobs=n_jobs,
        )
        node = np.argsort(order)
        return replace(found, solution=found.solution[node], degree=found.degree[node])
    degree, graph = _weighted_graph(affinity, node_weights, self_similarity)
    root_weight = np.ones(n, dtype) if node_weights is None else np.sqrt(node_weights).astype(dtype)
    # The component that converges slowest is known in advance: S sqrt(d w) = sqrt(d w). Starting from its
    # solution saves about a fifth of the iterations.
    slow = np.sqrt(degree) * root_weight
    slow /= max(np.linalg.norm(slow), np.finfo(np.float64).tiny)
    slow_product = slow - alpha * (graph @ slow.astype(dtype))  # nodes without neighbors: slow itself
    solution = np.empty((n, n_classes), dtype=dtype)
    residuals, n_iterations = np.empty(n_classes), np.empty(n_classes, dtype=np.int64)
    converged, energy_given, energy_solution = True, 0.0, 0.0
    with stage("solve", total=n_classes) as advance:
        for columns in row_blocks(n_classes, _CLASSES_AT_ONCE):
            given = _label_columns(labels, columns, root_weight)
            coefficients = (slow @ given) / (1 - alpha)
            part = conjugate_gradient(
                graph,
                alpha,
                given,
                start=np.outer(slow, coefficients).astype(dtype),
                start_product=np.outer(slow_product, coefficients).astype(dtype),
                tol=tol,
                max_iter=max_iter,
                n_jobs=n_jobs,
            )
            energy_given += laplacian_energy(graph, alpha, given, given)
            energy_solution += energy_of_solution(part, alpha, given)
            solution[:, columns] = part.values
            residuals[columns], n_iterations[columns] = part.residuals, part.n_iterations
            converged &= bool(part.converged.all())
            advance(columns.stop - columns.start)
    if node_weights is not None:
        _undo_weights(solution, labels, affinity, degree, node_weights, alpha)
    energy = EnergyChange(energy_given, energy_solution)
    return Propagation(solution, degree, residuals, n_iterations, converged, energy)


def clipped_softmax(solution: FloatArray) -> FloatArray:
    """Turn a solution into class probabilities: the softmax over the classes of the values clipped at 0.

    Parameters
    ----------
    solution : ndarray of shape (n, C)
        The solution for every class.

    Returns
    -------
    ndarray of shape (n, C)
        Rows sum to 1.
    """
    result = np.empty_like(solution)
    for rows in row_blocks(len(solution), _ROWS_PER_BLOCK):
        values = np.maximum(solution[rows], 0)
        values -= values.max(axis=1, keepdims=True)
        np.exp(values, out=values)
        result[rows] = values / values.sum(axis=1, keepdims=True)
    return result


def _weighted_graph(
    affinity: sparse.csr_array, node_weights: FloatArray | None, self_similarity: FloatArray | None
) -> tuple[FloatArray, sparse.csr_array]:
    """Degrees with all copies counted, and the symmetric normalized graph."""
    if node_weights is None:
        degree = degrees(affinity)
        return degree, normalized(affinity, degree)
    n = affinity.shape[0]
    own = np.ones(n) if self_similarity is None else self_similarity
    to_copies = np.maximum(node_weights - 1, 0) * own
    degree = affinity.astype(np.float64) @ node_weights.astype(np.float64) + to_copies
    degree[degree <= 0] = 1.0
    root = np.sqrt(node_weights).astype(affinity.dtype)
    weighted = sparse.csr_array(affinity, copy=True)
    weighted.data *= root[weighted.indices] * np.repeat(root, np.diff(weighted.indptr))
    weighted = (weighted + sparse.diags_array(to_copies.astype(affinity.dtype))).tocsr()
    return degree, normalized(weighted, degree)


def _label_columns(labels: IntArray | FloatArray, columns: slice, scale: FloatArray) -> FloatArray:
    """The given labels of a chunk of classes, each node's multiplied by its scale."""
    if labels.ndim == 1:
        return one_hot(labels.astype(np.int64, copy=False), columns, scale)
    soft: FloatArray = (labels[:, columns] * scale[:, None]).astype(scale.dtype, copy=False)
    return soft


def one_hot(codes: IntArray, columns: slice, scale: FloatArray) -> FloatArray:
    """One column per class of a chunk: the scale of a node at its label, and 0 elsewhere.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Labels, -1 where a node has none.
    columns : slice
        The classes of the chunk.
    scale : ndarray of shape (n,)
        Entry of every node at its label.

    Returns
    -------
    ndarray of shape (n, n_columns)
    """
    given = np.zeros((len(codes), columns.stop - columns.start), dtype=scale.dtype)
    rows = np.flatnonzero((codes >= columns.start) & (codes < columns.stop))
    given[rows, codes[rows] - columns.start] = scale[rows]
    return given


def _undo_weights(
    solution: FloatArray,
    labels: IntArray | FloatArray,
    affinity: sparse.csr_array,
    degree: FloatArray,
    node_weights: FloatArray,
    alpha: float,
) -> None:
    """Compute Y from G in place; nodes of weight 0 get the solution that their neighbors imply."""
    weighted = node_weights > 0
    solution[weighted] /= np.sqrt(node_weights[weighted])[:, None].astype(solution.dtype)
    if weighted.all():
        return
    unweighted = np.flatnonzero(~weighted)
    solution[unweighted] = 0
    message = solution * (node_weights / np.sqrt(degree))[:, None].astype(solution.dtype)
    solution[unweighted] = alpha * (affinity[unweighted] @ message) / np.sqrt(degree[unweighted])[:, None]
    every_class = slice(0, solution.shape[1])
    solution[unweighted] += _label_columns(
        labels[unweighted], every_class, np.ones(len(unweighted), solution.dtype)
    )
