"""The noise matrix: T[z, y] is the probability that a sample of true class z was given the label y.

``candidates`` are those of ``candidates.py``.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.noise_aware.settings import SETTINGS

NOISE_MODEL = SETTINGS.noise_model


def uniform_noise(rate: float, base: FloatArray) -> FloatArray:
    """T = (1 - rate) I + rate 1 base': a wrong label is drawn from ``base``, whatever the true class."""
    n_classes = len(base)
    return (1 - rate) * np.eye(n_classes) + rate * np.tile(base, (n_classes, 1))


def probability_of_given(transition: FloatArray, codes: IntArray, candidates: IntArray | None) -> FloatArray:
    """(n, R) probability of the given label under every candidate class."""
    if candidates is None:
        return np.ascontiguousarray(transition.T)[codes]
    return _with_any_other(transition.T).take(_cells(codes, candidates, len(transition)))


def posterior(
    probabilities: FloatArray, transition: FloatArray, codes: IntArray, candidates: IntArray | None
) -> tuple[FloatArray, FloatArray]:
    """p(true class | x, given label) as (n, R) and p(given label | x) as (n,)."""
    joint = probabilities * probability_of_given(transition, codes, candidates)
    evidence = joint.sum(axis=1)
    joint /= np.maximum(evidence, NOISE_MODEL.tiny)[:, None]
    return joint, evidence


def pair_counts(
    posteriors: FloatArray, codes: IntArray, n_classes: int, candidates: IntArray | None
) -> FloatArray:
    """(C, C) expected number of samples by true class and given label."""
    n = len(posteriors)
    if candidates is None:
        by_label = sparse.csr_array((np.ones(n), (codes, np.arange(n))), shape=(n_classes, n))
        return np.ascontiguousarray((by_label @ posteriors).T)
    counts = _counts_at(_cells(codes, candidates, n_classes), posteriors, n_classes)
    return np.ascontiguousarray(counts.T)


def _cells(codes: IntArray, candidates: IntArray, n_classes: int) -> IntArray:
    """(n, R) flat indices of given label and candidate in a table (given, true and "any other")."""
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
    """EM for T with the class probabilities held fixed.

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
        Steps; with candidates it may stop earlier.

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
        evidence = np.maximum(joint.sum(axis=1), NOISE_MODEL.tiny)
        joint /= evidence[:, None]
        counts = _counts_at(cells, joint, len(by_given))
        counts += prior_counts
        by_given = counts / counts.sum(axis=0)
        value = float(np.log(evidence).mean())
        if value - last < NOISE_MODEL.least_em_gain:
            break
        last = value
    return np.ascontiguousarray(by_given.T)


def is_diagonal_dominant(transition: FloatArray, row_counts: FloatArray) -> bool:
    """Whether the right label is about the most frequent one in every class with enough expected samples.

    A matrix that is not has renamed the classes: likelihood alone cannot tell the names apart.
    """
    counted = row_counts >= NOISE_MODEL.fewest_for_dominance
    own = np.diag(transition)[counted]
    return (
        bool((own >= NOISE_MODEL.dominance * transition[counted].max(axis=1)).all())
        if counted.any()
        else True
    )
