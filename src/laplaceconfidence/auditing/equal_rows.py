"""Rows of features that are exactly equal, found by their hashes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import FloatArray, IntArray, sized_row_blocks


def groups_of_equal_rows(features: FloatArray, more: FloatArray | None = None) -> IntArray:
    """Number the rows of one or two arrays such that equal rows have the same number.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        Feature vectors.
    more : ndarray of shape (m, d), optional
        More of them. Rows of different precision are compared in the lower one.

    Returns
    -------
    ndarray of int of shape (n,) or (n + m,)
        Numbers of the rows of ``features``, then of ``more``.
    """
    parts = [features] if more is None else [features, more]
    precision = min((part.dtype for part in parts), key=lambda dtype: dtype.itemsize)
    parts = [part.astype(precision, copy=False) for part in parts]
    rows = parts[0] if more is None else np.concatenate(parts)
    _, first, groups = np.unique(_hashes(rows), return_index=True, return_inverse=True)
    groups = groups.astype(np.int64)
    counts = np.bincount(groups)
    shared = np.flatnonzero(counts[groups] > 1)
    # Two different rows hardly ever have the same hash, but what is reported as a copy must be one.
    for block in sized_row_blocks(len(shared), rows.shape[1]):
        some = shared[block]
        differing = some[(rows[some] != rows[first[groups[some]]]).any(axis=1)]
        groups[differing] = len(counts) + differing
    return groups


def _hashes(rows: FloatArray) -> NDArray[np.uint64]:
    """One hash per row: the sum of its words, each times a random odd number, modulo 2^64."""
    word: Any = np.uint32 if rows.dtype.itemsize == 4 else np.uint64
    factors = np.random.default_rng(0).integers(2**63, size=rows.shape[1], dtype=np.uint64) * 2 + 1
    hashes = np.empty(len(rows), dtype=np.uint64)
    for block in sized_row_blocks(*rows.shape):
        some = rows[block] + rows.dtype.type(0)  # -0 becomes 0
        words = np.ascontiguousarray(some).view(word).astype(np.uint64)
        words ^= words >> np.uint64(29)  # round numbers differ in their upper bits only
        hashes[block] = (words * factors).sum(axis=1, dtype=np.uint64)
    return hashes


def pairs_within(groups: IntArray) -> tuple[IntArray, IntArray]:
    """List pairs of successive members of every group: enough to connect all of them.

    Parameters
    ----------
    groups : ndarray of int of shape (n,)
        Number of the group of every row.

    Returns
    -------
    first : ndarray of int
        Rows.
    second : ndarray of int
        The next row of the same group.
    """
    order = np.argsort(groups, kind="stable")
    same = groups[order[1:]] == groups[order[:-1]]
    return order[:-1][same], order[1:][same]


def pairs_across(groups: IntArray, n: int) -> tuple[IntArray, IntArray]:
    """List pairs of equal rows across two arrays such that every row with a copy is in some pair.

    Parameters
    ----------
    groups : ndarray of int of shape (n + m,)
        Number of the group of every row of both.
    n : int
        Rows of the first array.

    Returns
    -------
    rows : ndarray of int
        Rows of the first array.
    others : ndarray of int
        Rows of the second array.
    """
    here, there = groups[:n], groups[n:]
    shared, first_here, first_there = np.intersect1d(here, there, return_indices=True)
    rows, others = (np.flatnonzero(np.isin(part, shared)) for part in (here, there))
    return (
        np.concatenate([rows, first_here[np.searchsorted(shared, there[others])]]),
        np.concatenate([first_there[np.searchsorted(shared, here[rows])], others]),
    )
