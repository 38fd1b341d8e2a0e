"""From a propagated solution to a distribution over classes."""

from __future__ import annotations

import numpy as np

from laplaceconfidence.arrays import FloatArray

_ROWS_AT_ONCE = 4_096


def clipped_softmax(solution: FloatArray) -> FloatArray:
    """Softmax over the classes of the solution clipped at 0, a few rows at a time to spare memory."""
    result = np.empty_like(solution)
    for start in range(0, len(solution), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        values = np.maximum(solution[rows], 0)
        values -= values.max(axis=1, keepdims=True)
        np.exp(values, out=values)
        result[rows] = values / values.sum(axis=1, keepdims=True)
    return result
