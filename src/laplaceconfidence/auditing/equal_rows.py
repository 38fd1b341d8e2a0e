"""Which rows of features are equal, number by number: found by their hashes, whatever a search missed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.auditing.blocks import row_blocks


def groups_of_equal_rows(features: FloatArray, more: FloatArray | None = None) -> IntArray:
    """A number for every row of ``features``, and of ``more`` after them; equal rows have the same number.

    Rows of different precision are compared in the lower one.
    """
    parts = [features] if more is None else [features, more]
    precision = min((part.dtype for part in parts), key=lambda dtype: dtype.itemsize)
    parts = [part.astype(precision, copy=False) for part in parts]
    rows = parts[0] if more is None else np.concatenate(parts)
    _, first, groups = np.unique(_hashes(rows), return_index=True, return_inverse=True)
    groups = groups.astype(np.int64)
    counts = np.bincount(groups)
    shared = np.flatnonzero(counts[groups] > 1)
    # Two different rows with one hash are next to impossible, but a copy is a claim that must be true.
    for block in row_blocks(len(shared), rows.shape[1]):
        some = shared[block]
        differing = some[(rows[some] != rows[first[groups[some]]]).any(axis=1)]
        groups[differing] = len(counts) + differing
    return groups


def _hashes(rows: FloatArray) -> NDArray[np.uint64]:
    """One hash a row: the sum of its words, each times a random odd number, modulo 2^64."""
    word: Any = np.uint32 if rows.dtype.itemsize == 4 else np.uint64
    factors = np.random.default_rng(0).integers(2**63, size=rows.shape[1], dtype=np.uint64) * 2 + 1
    hashes = np.empty(len(rows), dtype=np.uint64)
    for block in row_blocks(*rows.shape):
        some = rows[block] + rows.dtype.type(0)  # -0 becomes 0
        words = np.ascontiguousarray(some).view(word).astype(np.uint64)
        words ^= words >> np.uint64(29)  # round numbers differ in their upper bits only
        hashes[block] = (words * factors).sum(axis=1, dtype=np.uint64)
    return hashes
