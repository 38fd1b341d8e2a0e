"""The Laplacian energy of a labeling: how neighbors disagree, and how far it is from the given labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from laplaceconfidence.arrays import FloatArray


class EnergyChange(NamedTuple):
    """Energy of the given labels and of the solution that was found; the second is never larger."""

    given: float
    solution: float


def laplacian_energy(graph: sparse.csr_array, alpha: float, labels: FloatArray, given: FloatArray) -> float:
    """Q(Y) = 1/2 tr(Y^T (I - S) Y) + mu/2 |Y - Y_given|^2 with mu = 1/alpha - 1: eq. 4 of the paper.

    The first term is 1/4 sum_ij A_ij |y_i/sqrt(d_i) - y_j/sqrt(d_j)|^2 (plus |y_i|^2 / 2 of isolated nodes).
    The paper writes 1/2 and normalizes A a second time; with 1/4 and the plain A the minimum is exactly
    the solution of the paper's linear system, times 1 - alpha.
    """
    disagreement = np.sum(labels * (labels - graph @ labels), dtype=np.float64)
    fidelity = np.sum((labels - given) ** 2, dtype=np.float64)
    return float(0.5 * disagreement + 0.5 * (1 / alpha - 1) * fidelity)
