"""Annotators whose labels are copies of another annotator's: they are one source and count once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.annotators.labels import CodedLabels
from laplaceconfidence.confidence.annotators.model import AnnotatorModel

SIGNIFICANCE = 0.001  # probability of any wrong finding, if all annotators work by themselves
_MOST_PAIRS = 50_000_000  # of labels of the same sample; comparing more takes minutes


def find_copies(labels: CodedLabels, fit: Callable[[CodedLabels], AnnotatorModel]) -> dict[int, int]:
    """Find annotators who gave the same labels as another one, more often than chance allows.

    Two annotators who never differ on the samples they share are copies if independent annotators, both with
    the noise matrix of the first, would agree on all of them with a probability below 0.001, divided by the
    number of pairs of annotators that share samples. The matrix is fitted without the labels of the second:
    together, two copies would confirm each other. Only samples count that others labeled as well.

    Parameters
    ----------
    labels : CodedLabels
        The labels.
    fit : callable
        Fits noise matrices and posteriors to labels.

    Returns
    -------
    dict of int to int
        Every copying annotator and the one whose labels are kept, the first of them.
    """
    identical, n_pairs = _identical_pairs(labels)
    limit = np.log(SIGNIFICANCE / max(1, n_pairs))
    least_shared = limit / np.log(1 / labels.n_classes)  # fewer cannot be significant
    pairs = [(first, second) for first, second, n_shared in identical if n_shared >= least_shared]
    if not pairs:
        return {}
    kept = labels.without(np.array([second for _, second in pairs], dtype=np.int64))
    model = fit(kept)
    n_labels = np.bincount(kept.samples, minlength=kept.n_samples)
    found: dict[int, int] = {}
    for first, second in pairs:
        rows = np.intersect1d(_samples_of(labels, first), _samples_of(labels, second))
        rows = rows[n_labels[rows] > 1]
        agreement: FloatArray = (model.matrix(kept, first) ** 2).sum(axis=1)
        if first not in found and np.log(model.posteriors[rows] @ agreement).sum() < limit:
            found.setdefault(second, first)
    return found


def _identical_pairs(labels: CodedLabels) -> tuple[list[tuple[int, int, int]], int]:
    """Pairs of annotators who never differ, with the number of samples they share; number of all pairs."""
    per_sample = np.bincount(labels.samples, minlength=labels.n_samples)
    if int((per_sample.astype(np.int64) ** 2).sum()) > _MOST_PAIRS:
        return [], 0
    wide = labels.samples * labels.n_classes + labels.codes
    shared, agreed = (
        sparse.triu(of @ of.T, k=1).tocsr()
        for of in (
            _given(labels.annotators, labels.samples, labels.n_annotators, labels.n_samples),
            _given(labels.annotators, wide, labels.n_annotators, labels.n_samples * labels.n_classes),
        )
    )
    pairs = shared.tocoo()
    always = np.asarray(agreed[pairs.row, pairs.col]).ravel() >= pairs.data
    found = zip(
        pairs.row[always].tolist(), pairs.col[always].tolist(), pairs.data[always].tolist(), strict=True
    )
    return [(first, second, int(n_shared)) for first, second, n_shared in found], pairs.nnz


def _given(rows: IntArray, columns: IntArray, n_rows: int, n_columns: int) -> sparse.csr_array:
    """Sparse matrix of ones; several labels of one annotator for one sample count once."""
    matrix = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n_rows, n_columns))
    matrix.data[:] = 1
    return matrix


def _samples_of(labels: CodedLabels, annotator: int) -> IntArray:
    return np.asarray(labels.samples[labels.annotators == annotator])
