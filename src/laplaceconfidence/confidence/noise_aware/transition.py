"""The noise matrix T, where T[z, y] is the probability that a sample of true class z is given the label y.

With many classes, every sample has columns for its likeliest classes only, and one column for all others.
``candidates`` (n, R) holds R - 1 class codes per row and, in its last column, the number of classes C, which
stands for "any other class". Arrays over classes are then (n, R) or (n, folds, R). With few classes,
``candidates`` is ``None`` and arrays have all C columns in order.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.noise_aware.settings import SETTINGS
from laplaceconfidence.data.labels import MISSING

NOISE_MODEL = SETTINGS.noise_model


def candidate_width(n_classes: int) -> int:
    """Number of columns of arrays over classes: all classes, or the candidates and "any other class".

    Parameters
    ----------
    n_classes : int
        Number of classes.

    Returns
    -------
    int
    """
    return n_classes if n_classes <= SETTINGS.classes.many_above else SETTINGS.classes.n_candidates + 1


def likely_classes(evidence: list[FloatArray], given: IntArray) -> IntArray:
    """The classes of largest mean probability over the kinds of evidence; the given class is always included.

    Parameters
    ----------
    evidence : list of ndarray of shape (n, C)
        Log-scores, one array per kind of evidence.
    given : ndarray of shape (n,)
        Given labels, ``MISSING`` where there is none.

    Returns
    -------
    ndarray of shape (n, R)
        Candidates; the last column is C.
    """
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
    """Reduce log-scores of all classes to the candidates.

    Parameters
    ----------
    scores : ndarray of shape (n, C) or (n, folds, C)
        Log-scores.
    candidates : ndarray of shape (n, R) or None
        The classes of the columns; ``None`` returns ``scores``.

    Returns
    -------
    ndarray of shape (n, R) or (n, folds, R)
        The last column is the mean over all other classes.
    """
    if candidates is None:
        return scores
    columns = candidates[:, :-1] if scores.ndim == 2 else candidates[:, None, :-1]
    kept = np.take_along_axis(scores, columns, axis=-1)
    n_others = scores.shape[-1] - columns.shape[-1]
    others = (scores.sum(axis=-1, keepdims=True) - kept.sum(axis=-1, keepdims=True)) / n_others
    return np.concatenate([kept, others.astype(scores.dtype)], axis=-1)


def widen(probabilities: FloatArray, candidates: IntArray | None, n_classes: int) -> FloatArray:
    """Expand probabilities of the candidates to all classes.

    Parameters
    ----------
    probabilities : ndarray of shape (n, R)
        Probabilities.
    candidates : ndarray of shape (n, R) or None
        The classes of the columns; ``None`` returns ``probabilities``.
    n_classes : int
        Number of classes.

    Returns
    -------
    ndarray of shape (n, C)
        The probability of "any other class" is divided evenly among these classes.
    """
    if candidates is None:
        return probabilities
    n_others = n_classes - candidates.shape[1] + 1
    wide = np.repeat((probabilities[:, -1:] / n_others).astype(np.float32), n_classes, axis=1)
    np.put_along_axis(wide, candidates[:, :-1], probabilities[:, :-1].astype(np.float32), axis=1)
    return wide


def uniform_noise(rate: float, base: FloatArray) -> FloatArray:
    """T = (1 - rate) I + rate 1 base': a share of the labels is drawn from ``base``, whatever the true class.

    Parameters
    ----------
    rate : float
        Share of labels that are drawn; a drawn label may be the right one.
    base : ndarray of shape (C,)
        Probabilities of the drawn labels.

    Returns
    -------
    ndarray of shape (C, C)
    """
    n_classes = len(base)
    return (1 - rate) * np.eye(n_classes) + rate * np.tile(base, (n_classes, 1))


def probability_of_given(transition: FloatArray, codes: IntArray, candidates: IntArray | None) -> FloatArray:
    """Probability of the given label if the true class is each of the candidates.

    Parameters
    ----------
    transition : ndarray of shape (C, C)
        The noise matrix.
    codes : ndarray of shape (n,)
        Given labels.
    candidates : ndarray of shape (n, R) or None
        The classes of the columns; ``None`` for all in order.

    Returns
    -------
    ndarray of shape (n, R)
    """
    if candidates is None:
        return np.ascontiguousarray(transition.T)[codes]
    return _with_any_other(transition.T).take(_cells(codes, candidates, len(transition)))


def posterior(
    probabilities: FloatArray, transition: FloatArray, codes: IntArray, candidates: IntArray | None
) -> tuple[FloatArray, FloatArray]:
    """Posteriors of the true class.

    Parameters
    ----------
    probabilities : ndarray of shape (n, R)
        p(true class | x).
    transition : ndarray of shape (C, C)
        The noise matrix.
    codes : ndarray of shape (n,)
        Given labels.
    candidates : ndarray of shape (n, R) or None
        The classes of the columns; ``None`` for all in order.

    Returns
    -------
    posteriors : ndarray of shape (n, R)
        p(true class | x, given label).
    likelihood : ndarray of shape (n,)
        p(given label | x).
    """
    joint = probabilities * probability_of_given(transition, codes, candidates)
    likelihood = joint.sum(axis=1)
    joint /= np.maximum(likelihood, NOISE_MODEL.tiny)[:, None]
    return joint, likelihood


def pair_counts(
    posteriors: FloatArray, codes: IntArray, n_classes: int, candidates: IntArray | None
) -> FloatArray:
    """Expected number of samples per true class and given label.

    Parameters
    ----------
    posteriors : ndarray of shape (n, R)
        p(true class | x, given label).
    codes : ndarray of shape (n,)
        Given labels.
    n_classes : int
        Number of classes.
    candidates : ndarray of shape (n, R) or None
        The classes of the columns; ``None`` for all in order.

    Returns
    -------
    ndarray of shape (C, C)
        True classes in rows; samples of "any other class" are left out.
    """
    n = len(posteriors)
    if candidates is None:
        by_label = sparse.csr_array((np.ones(n), (codes, np.arange(n))), shape=(n_classes, n))
        return np.ascontiguousarray((by_label @ posteriors).T)
    counts = _counts_at(_cells(codes, candidates, n_classes), posteriors, n_classes)
    return np.ascontiguousarray(counts.T)


def _cells(codes: IntArray, candidates: IntArray, n_classes: int) -> IntArray:
    """(n, R) flat indices of given label and candidate in a table of shape (C, C + 1)."""
    return np.asarray(codes[:, None] * (n_classes + 1) + candidates)


def _with_any_other(by_given: FloatArray) -> FloatArray:
    """T' (given, true) with a last column for "any other class": the mean over the wrong ones."""
    n_classes = len(by_given)
    other = (by_given.sum(axis=1) - by_given.diagonal()) / max(1, n_classes - 1)
    return np.concatenate([by_given, other[:, None]], axis=1)


def _counts_at(cells: IntArray, posteriors: FloatArray, n_classes: int) -> FloatArray:
    """(given, true) expected numbers, without those of "any other class"."""
    size = n_classes * (n_classes + 1)
    counts = np.bincount(cells.ravel(), weights=posteriors.ravel(), minlength=size)
    return np.asarray(counts.reshape(n_classes, n_classes + 1)[:, :-1], dtype=np.float64)


def fit_transition(
    probabilities: FloatArray,
    codes: IntArray,
    prior_counts: FloatArray,
    candidates: IntArray | None,
    start: FloatArray | None = None,
    n_steps: int = NOISE_MODEL.em_steps,
) -> FloatArray:
    """Fit T by expectation maximization (EM), with the class probabilities held fixed.

    Parameters
    ----------
    probabilities : ndarray of shape (n, R)
        Class probabilities of every sample.
    codes : ndarray of shape (n,)
        Given labels.
    prior_counts : ndarray of shape (C, C)
        Dirichlet counts that are added to the expected ones.
    candidates : ndarray of shape (n, R) or None
        The classes of the columns.
    start : ndarray of shape (C, C) or None, default=None
        T to start from; ``None`` starts from the prior.
    n_steps : int, default=20
        Number of EM steps; with candidates, EM also stops when the likelihood hardly grows.

    Returns
    -------
    ndarray of shape (C, C)
        T, rows sum to 1.
    """
    transition = prior_counts / prior_counts.sum(axis=1, keepdims=True) if start is None else start
    if candidates is not None:
        cells = _cells(codes, candidates, len(transition))
        return _fit_many_classes(probabilities, cells, prior_counts.T, transition.T, n_steps)
    for _ in range(n_steps):
        posteriors, _ = posterior(probabilities, transition, codes, candidates)
        counts = pair_counts(posteriors, codes, len(transition), candidates) + prior_counts
        transition = counts / counts.sum(axis=1, keepdims=True)
    return np.asarray(transition)


def _fit_many_classes(
    probabilities: FloatArray, cells: IntArray, prior_counts: FloatArray, by_given: FloatArray, n_steps: int
) -> FloatArray:
    """The same EM on (given, true) tables, where a row's candidates are close together in memory."""
    prior_counts = np.ascontiguousarray(prior_counts)
    last = -np.inf
    for _ in range(n_steps):
        joint = _with_any_other(by_given).take(cells)
        joint *= probabilities
        likelihood = np.maximum(joint.sum(axis=1), NOISE_MODEL.tiny)
        joint /= likelihood[:, None]
        counts = _counts_at(cells, joint, len(by_given))
        counts += prior_counts
        by_given = counts / counts.sum(axis=0)
        value = float(np.log(likelihood).mean())
        if value - last < NOISE_MODEL.least_em_gain:
            break
        last = value
    return np.ascontiguousarray(by_given.T)


def is_diagonal_dominant(transition: FloatArray, row_counts: FloatArray) -> bool:
    """Return whether the right label is about the most frequent one in every class of enough samples.

    If it is not, the fit has probably exchanged classes: the likelihood does not change if classes exchange
    their names.

    Parameters
    ----------
    transition : ndarray of shape (C, C)
        The noise matrix.
    row_counts : ndarray of shape (C,)
        Expected number of samples per true class.

    Returns
    -------
    bool
    """
    counted = row_counts >= NOISE_MODEL.fewest_for_dominance
    if not counted.any():
        return True
    own = np.diag(transition)[counted]
    return bool((own >= NOISE_MODEL.dominance * transition[counted].max(axis=1)).all())
