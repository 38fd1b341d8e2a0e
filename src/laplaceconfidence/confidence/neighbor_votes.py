"""Votes of neighbors, for the estimators that count labels nearby."""

from __future__ import annotations

import numpy as np

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.confidence.given_labels import class_shares
from laplaceconfidence.graph.neighbors import Neighbors


def voting_neighbors(neighbors: Neighbors, may_vote: BoolArray) -> BoolArray:
    """Mask (n, k) of the neighbors that vote: allowed to, and pointing the same way as the sample.

    Without the second rule the arbitrary neighbors of a zero vector would speak, and their order decide.
    """
    mask: BoolArray = may_vote[neighbors.indices] & (neighbors.similarities > 0)
    return mask


def vote_counts(indices: IntArray, weights: FloatArray, codes: IntArray, n_classes: int) -> FloatArray:
    """Weights (n, k) of every row's neighbors summed by label, (n, C); who has no label must weigh 0."""
    n = len(indices)
    labels = np.maximum(codes[indices], 0)
    cells = (labels + np.arange(n)[:, None] * n_classes).ravel()
    counts = np.bincount(cells, weights=weights.ravel(), minlength=n * n_classes)
    return np.asarray(counts, dtype=np.float64).reshape(n, n_classes)


def to_shares(counts: FloatArray, codes: IntArray) -> FloatArray:
    """Turn rows of counts into shares, in place; where nobody votes, into the shares of all given labels."""
    total = counts.sum(axis=1, keepdims=True)
    counts[total[:, 0] <= 0] = class_shares(codes, counts.shape[1])
    np.divide(counts, total, out=counts, where=total > 0)
    return counts
