"""Many classes: every sample keeps its likeliest classes as columns, and all others as one column.

``candidates`` (n, R) holds R - 1 class codes per row and, in its last column, the number of classes C, which
stands for "any other class". Arrays over classes are then (n, R) or (n, folds, R). Where there are few
classes, ``candidates`` is ``None`` and arrays have all C columns in order.
"""

from __future__ import annotations

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.noise_aware.settings import SETTINGS
from laplaceconfidence.data.labels import MISSING


def candidate_width(n_classes: int) -> int:
    """Columns of arrays over classes: all classes, or the candidates and "any other class"."""
    return n_classes if n_classes <= SETTINGS.classes.many_above else SETTINGS.classes.n_candidates + 1


def likely_classes(evidence: list[FloatArray], given: IntArray) -> IntArray:
    """(n, R) the classes of largest mean probability over the kinds of evidence, the given one included."""
    n, n_classes = evidence[0].shape
    total = np.zeros((n, n_classes), dtype=np.float32)
    for part in evidence:
        share = np.exp(part - part.max(axis=1, keepdims=True))
        total += share / share.sum(axis=1, keepdims=True)
    labeled = np.flatnonzero(given != MISSING)
    total[labeled, given[labeled]] = np.inf
    n_kept = SETTINGS.classes.n_candidates
    candidates = np.full((n, n_kept + 1), n_classes, dtype=np.int64)
    candidates[:, :-1] = np.argpartition(-total, n_kept - 1, axis=1)[:, :n_kept]
    return candidates


def narrow(scores: FloatArray, candidates: IntArray | None) -> FloatArray:
    """Log-scores (..., C) of the candidates; the last column is the mean over all other classes."""
    if candidates is None:
        return scores
    columns = candidates[:, :-1] if scores.ndim == 2 else candidates[:, None, :-1]
    kept = np.take_along_axis(scores, columns, axis=-1)
    n_others = scores.shape[-1] - columns.shape[-1]
    others = (scores.sum(axis=-1, keepdims=True) - kept.sum(axis=-1, keepdims=True)) / n_others
    return np.concatenate([kept, others.astype(scores.dtype)], axis=-1)


def widen(probabilities: FloatArray, candidates: IntArray | None, n_classes: int) -> FloatArray:
    """Probabilities of all classes (n, C); that of "any other class" is divided evenly among them."""
    if candidates is None:
        return probabilities
    n_others = n_classes - candidates.shape[1] + 1
    wide = np.repeat((probabilities[:, -1:] / n_others).astype(np.float32), n_classes, axis=1)
    np.put_along_axis(wide, candidates[:, :-1], probabilities[:, :-1].astype(np.float32), axis=1)
    return wide


def bias_of(bias: FloatArray, candidates: IntArray | None) -> FloatArray:
    """Class biases (C,) at the candidates; "any other class" has the logarithm of how many it stands for."""
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
