"""Node weights: how many copies of itself a sample counts as."""

from __future__ import annotations

from typing import Any

import numpy as np

from laplaceconfidence.arrays import FloatArray, to_numpy
from laplaceconfidence.validation import check_finite, check_same_length, must_be


def check_node_weights(sample_weight: Any, n: int) -> FloatArray | None:
    """Finite weights of at least 0, one a sample and not all zero, or ``None``."""
    if sample_weight is None:
        return None
    weights = to_numpy(sample_weight)
    if weights.ndim != 1:
        raise must_be("sample_weight", "one-dimensional, one weight a sample", f"shape {weights.shape}")
    check_same_length("sample_weight", len(weights), "y", n)
    weights = weights.astype(np.float64)
    check_finite(weights, "sample_weight")
    if weights.min() < 0 or weights.max() == 0:
        raise must_be("sample_weight", "non-negative weights, not all zero", float(weights.min()))
    return weights


def self_similarity(unit: FloatArray | None, affinity: Any) -> FloatArray:
    """What a sample says to its own copy: 1 for a unit vector, else as much as to its closest neighbor."""
    own = affinity.max(axis=1).toarray().ravel() if unit is None else (unit != 0).any(axis=1)
    return np.asarray(own, dtype=np.float64)
