"""Annotators whose labels are copies of another annotator's: they are one source and count once."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.special import softmax

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.annotators.labels import CodedLabels
from laplaceconfidence.confidence.annotators.model import AnnotatorModel

SIGNIFICANCE = 0.001  # probability of any wrong finding, if all annotators work by themselves
_MOST_PAIRS = 50_000_000  # of labels of the same sample; comparing more takes minutes


def find_copies(labels: CodedLabels, log_prior: FloatArray, model: AnnotatorModel) -> dict[int, int]:
    """Find annotators who gave the same labels as another one, more often than chance allows.

    Two annotators who never differ on the samples they share are copies if independent annotators of the same
    accuracy would agree on all of them with a probability below 0.001, divided by the number of pairs of
    annotators that share samples. Their accuracy is judged by the labels of the others alone: together, two
    copies would confirm each other. Only samples count that others labeled as well.

    Parameters
    ----------
    labels : CodedLabels
        The labels.
    log_prior : ndarray of shape (n, C)
        Logarithms of the class probabilities without labels.
    model : AnnotatorModel
        Noise matrices that were fitted to all labels.

    Returns
    -------
    dict of int to int
        Every copying annotator and the one whose labels are kept, the first of them.
    """
    pairs, limit = _identical_pairs(labels)
    n_labels = np.bincount(labels.samples, minlength=labels.n_samples)
    by_annotator = np.argsort(labels.annotators, kind="stable")
    starts = np.searchsorted(labels.annotators[by_annotator], np.arange(labels.n_annotators + 1))
    found: dict[int, int] = {}
    for first, second in pairs:
        own, other = (by_annotator[starts[one] : starts[one + 1]] for one in (first, second))
        rows, at_own, at_other = np.intersect1d(
            labels.samples[own], labels.samples[other], return_indices=True
        )
        judged = np.flatnonzero(n_labels[rows] > 2)
        if first in found or len(judged) == 0:
            continue
        own, other, rows = own[at_own][judged], other[at_other][judged], rows[judged]
        joint = (log_prior + model.log_likelihoods)[rows]
        joint -= model.log_chances[labels.pair_of[own]] + model.log_chances[labels.pair_of[other]]
        right = softmax(joint, axis=1)[np.arange(len(rows)), labels.codes[own]].sum()
        accuracy = (right + 0.5) / (len(rows) + 1)  # never 0 or 1
        agreement = accuracy**2 + (1 - accuracy) ** 2 / (labels.n_classes - 1)
        if len(rows) * np.log(agreement) < limit:
            found.setdefault(second, first)
    return found


def _identical_pairs(labels: CodedLabels) -> tuple[list[tuple[int, int]], float]:
    """Pairs of annotators who never differ on enough samples, and the logarithm of the allowed probability.

    Two who guess agree on a sample with a probability of 1 / C, which is the least possible: below a number
    of shared samples nothing is found, whatever their accuracy.
    """
    per_sample = np.bincount(labels.samples, minlength=labels.n_samples)
    if int((per_sample.astype(np.int64) ** 2).sum()) > _MOST_PAIRS:
        return [], -np.inf
    wide = labels.samples * labels.n_classes + labels.codes
    shared, agreed = (
        sparse.triu(of @ of.T, k=1).tocsr()
        for of in (
            _given(labels.annotators, labels.samples, labels.n_annotators, labels.n_samples),
            _given(labels.annotators, wide, labels.n_annotators, labels.n_samples * labels.n_classes),
        )
    )
    pairs = shared.tocoo()
    limit = float(np.log(SIGNIFICANCE / max(1, pairs.nnz)))
    enough = np.flatnonzero(pairs.data * np.log(labels.n_classes) > -limit)
    rows, columns = pairs.row[enough], pairs.col[enough]
    always = np.asarray(agreed[rows, columns]).ravel() >= pairs.data[enough]
    return list(zip(rows[always].tolist(), columns[always].tolist(), strict=True)), limit


def _given(rows: IntArray, columns: IntArray, n_rows: int, n_columns: int) -> sparse.csr_array:
    """Sparse matrix of ones; several labels of one annotator for one sample count once."""
    matrix = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n_rows, n_columns))
    matrix.data[:] = 1
    return matrix
