"""The Laplacian energy of a labeling: differences between neighbors, and from the given labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from laplaceconfidence.arrays import FloatArray


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
