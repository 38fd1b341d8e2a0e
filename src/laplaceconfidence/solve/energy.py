"""The Laplacian energy of a labeling: differences between neighbors, and from the given labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.solve.conjugate_gradient import Solution


class EnergyChange(NamedTuple):
    """Laplacian energy before and after the propagation.

    Attributes
    ----------
    given : float
        Energy of the given labels.
    solution : float
        Energy of the solution, which is smaller once the solver has converged.
    """

    given: float
    solution: float


def laplacian_energy(graph: sparse.csr_array, alpha: float, labels: FloatArray, given: FloatArray) -> float:
    """Compute Q(Y) = 1/2 tr(Y^T (I - S) Y) + mu/2 |Y - Y_given|^2 with mu = 1/alpha - 1, eq. 4 of the paper.

    The first term is 1/4 sum_ij A_ij |y_i/sqrt(d_i) - y_j/sqrt(d_j)|^2 (plus |y_i|^2 / 2 of isolated nodes).
    The paper has 1/2 and normalizes A a second time; with 1/4 and A itself, the minimum is exactly the
    solution of the paper's linear system, times 1 - alpha.

    Parameters
    ----------
    graph : scipy.sparse.csr_array of shape (n, n)
        The normalized graph S.
    alpha : float
        In (0, 1).
    labels : ndarray of shape (n, C)
        The labeling Y.
    given : ndarray of shape (n, C)
        The given labels.

    Returns
    -------
    float
    """
    disagreement = np.sum(labels * (labels - graph @ labels), dtype=np.float64)
    fidelity = np.sum((labels - given) ** 2, dtype=np.float64)
    return float(0.5 * disagreement + 0.5 * (1 / alpha - 1) * fidelity)


def energy_of_solution(solution: Solution, alpha: float, given: FloatArray) -> float:
    """Compute the Laplacian energy of Y = (1 - alpha) X without another product with the graph.

    With A = I - alpha S and X^T A X, which the solver knows, tr(X^T S X) = (|X|^2 - tr(X^T A X)) / alpha.

    Parameters
    ----------
    solution : Solution
        A solution X of (I - alpha S) X = Y_given, with its quadratic form.
    alpha : float
        In (0, 1).
    given : ndarray of shape (n, C)
        The given labels.

    Returns
    -------
    float
    """
    if solution.quadratic_form is None:
        raise ValueError("the energy needs a solution with 'true_residuals'")
    x, mu = solution.values, 1 / alpha - 1
    size, inner, labels = (_dot(*pair) for pair in ((x, x), (x, given), (given, given)))
    disagreement = size - (size - float(solution.quadratic_form.sum())) / alpha
    scale = 1 - alpha
    return 0.5 * scale**2 * disagreement + 0.5 * mu * (scale**2 * size - 2 * scale * inner + labels)


def _dot(left: FloatArray, right: FloatArray) -> float:
    return float(np.einsum("i,i->", left.ravel(), right.ravel(), dtype=np.float64))
