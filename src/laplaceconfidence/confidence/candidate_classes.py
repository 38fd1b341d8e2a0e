"""Many classes: every sample keeps its likely ones by name and all others as one.

``candidates`` (n, R) holds R - 1 class codes a row and, in its last column, the number of classes C, which
stands for "any other class". Arrays over classes are then (n, R) or (n, worlds, R). Where there are few
classes, ``candidates`` is ``None`` and arrays have all C columns in order.
"""

from __future__ import annotations

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.data.labels import MISSING

ALL_UP_TO = 50  # classes
N_NAMED = 31


def likely_classes(evidence: list[FloatArray], given: IntArray) -> IntArray:
    """(n, R) the classes of largest mean probability over the kinds of evidence, the given one included."""
    n, n_classes = evidence[0].shape
    total = np.zeros((n, n_classes), dtype=np.float32)
    for part in evidence:
        share = np.exp(part - part.max(axis=1, keepdims=True))
        total += share / share.sum(axis=1, keepdims=True)
    labeled = np.flatnonzero(given != MISSING)
    total[labeled, given[labeled]] = np.inf
    candidates = np.full((n, N_NAMED + 1), n_classes, dtype=np.int64)
    candidates[:, :-1] = np.argpartition(-total, N_NAMED - 1, axis=1)[:, :N_NAMED]
    return candidates


def narrow(scores: FloatArray, candidates: IntArray | None) -> FloatArray:
    """Log-scores (..., C) of the candidates; the others are represented by their mean."""
    if candidates is None:
        return scores
    named = candidates[:, :-1] if scores.ndim == 2 else candidates[:, None, :-1]
    kept = np.take_along_axis(scores, named, axis=-1)
    n_others = scores.shape[-1] - named.shape[-1]
    others = (scores.sum(axis=-1, keepdims=True) - kept.sum(axis=-1, keepdims=True)) / n_others
    return np.concatenate([kept, others.astype(scores.dtype)], axis=-1)


def widen(probabilities: FloatArray, candidates: IntArray | None, n_classes: int) -> FloatArray:
    """Probabilities of all classes (n, C); what any other class has is shared evenly among them."""
    if candidates is None:
        return probabilities
    n_others = n_classes - candidates.shape[1] + 1
    wide = np.repeat((probabilities[:, -1:] / n_others).astype(np.float32), n_classes, axis=1)
    np.put_along_axis(wide, candidates[:, :-1], probabilities[:, :-1].astype(np.float32), axis=1)
    return wide


def bias_of(bias: FloatArray, candidates: IntArray | None) -> FloatArray:
    """Class biases (C,) at the candidates; "any other class" is as many classes as it stands for."""
    if candidates is None:
        return bias
    n_others = len(bias) - candidates.shape[1] + 1
    taken: FloatArray = np.append(bias, np.log(n_others))[candidates]
    return taken


def sum_by_class(values: FloatArray, candidates: IntArray | None, n_classes: int) -> FloatArray:
    """Values (n, R) summed by class, (C,); those of "any other class" are left out."""
    if candidates is None:
        total: FloatArray = values.sum(axis=0)
        return total
    sums = np.bincount(candidates.ravel(), weights=values.ravel(), minlength=n_classes + 1)
    return np.asarray(sums[:n_classes], dtype=np.float64)
