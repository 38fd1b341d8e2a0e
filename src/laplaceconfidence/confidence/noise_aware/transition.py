"""The noise matrix T, where T[z, y] is the probability that a sample of true class z is given the label y.

With many classes, every sample has columns for its most probable classes only, and one column for the rest,
see ``Candidates``. Arrays over classes are then (n, R) or (n, folds, R). With few classes, ``candidates`` is
``None`` and arrays have all C columns in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import sparse

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.confidence.noise_aware.settings import SETTINGS
from laplaceconfidence.data.labels import MISSING

NOISE_MODEL = SETTINGS.noise_model


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The classes that have a column of their own, chosen by evidence that does not include the given label.

    If the given label always were a candidate, the choice itself would reveal it: at 80% noise none would be
    found. A given label outside the candidates is read from the column of the rest instead.

    Attributes
    ----------
    classes : ndarray of shape (n, R)
        R - 1 class codes per sample; the last column is C, which stands for all other classes, the rest.
    own_share : ndarray of shape (n,)
        Share of the given label in the probability of the rest, according to the evidence that chose the
        candidates; 0 where the given label is a candidate or missing.
    """

    classes: IntArray
    own_share: FloatArray

    def at(self, rows: IntArray | BoolArray | slice) -> Self:
        """Select samples.

        Parameters
        ----------
        rows : ndarray or slice
            The samples.

        Returns
        -------
        Candidates
        """
        return type(self)(self.classes[rows], self.own_share[rows])

    @classmethod
    def joined(cls, parts: list[Candidates]) -> Self:
        """Concatenate the candidates of several blocks of samples.

        Parameters
        ----------
        parts : list of Candidates
            The blocks, in order.

        Returns
        -------
        Candidates
        """
        return cls(
            np.concatenate([part.classes for part in parts]),
            np.concatenate([part.own_share for part in parts]),
        )


def own_columns(codes: IntArray, candidates: Candidates | None) -> tuple[IntArray, FloatArray]:
    """The column of every given label, and which part of its probability belongs to that label.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Given labels.
    candidates : Candidates or None
        The classes of the columns; ``None`` for all in order.

    Returns
    -------
    columns : ndarray of shape (n,)
        The last one, that of the rest, if the label is no candidate.
    parts : ndarray of shape (n,)
        1, but the label's share in the rest if it is no candidate.
    """
    if candidates is None:
        return codes, np.ones(len(codes))
    is_own = candidates.classes == codes[:, None]
    is_own[:, -1] = True
    columns = np.asarray(is_own.argmax(axis=1), dtype=np.int64)
    in_rest = columns == is_own.shape[1] - 1
    return columns, np.where(in_rest, candidates.own_share, 1.0)


def column_count(n_classes: int) -> int:
    """Number of columns of the evidence: one per class, or fewer, of which the last is that of the rest.

    Parameters
    ----------
    n_classes : int
        Number of classes.

    Returns
    -------
    int
    """
    settings = SETTINGS.classes
    return min(n_classes, max(settings.fewest_columns, round(settings.column_share * n_classes)))


def likely_classes(evidence: list[FloatArray], given: IntArray) -> Candidates:
    """The classes of largest mean probability over the kinds of evidence.

    Parameters
    ----------
    evidence : list of ndarray of shape (n, C)
        Log-scores, one array per kind of evidence, which do not depend on the given label of their sample.
    given : ndarray of shape (n,)
        Given labels, ``MISSING`` where there is none; they do not influence which classes are candidates.

    Returns
    -------
    Candidates
    """
    n, n_classes = evidence[0].shape
    total = np.zeros((n, n_classes), dtype=np.float32)
    for part in evidence:
        share = np.exp(part - part.max(axis=1, keepdims=True))
        total += share / share.sum(axis=1, keepdims=True)
    n_kept = column_count(n_classes) - 1
    classes = np.full((n, n_kept + 1), n_classes, dtype=np.int64)
    classes[:, :-1] = np.argpartition(-total, n_kept - 1, axis=1)[:, :n_kept]
    np.put_along_axis(total, classes[:, :-1], 0, axis=1)
    own = np.where(given == MISSING, 0, total[np.arange(n), np.maximum(given, 0)])
    return Candidates(classes, own / np.maximum(total.sum(axis=1), NOISE_MODEL.tiny))


def narrow(scores: FloatArray, candidates: Candidates | None) -> FloatArray:
    """Reduce log-scores of all classes to the candidates.

    Parameters
    ----------
    scores : ndarray of shape (n, C) or (n, folds, C)
        Log-scores.
    candidates : Candidates or None
        The classes of the columns; ``None`` returns ``scores``.

    Returns
    -------
    ndarray of shape (n, R) or (n, folds, R)
        The last column is the mean over all other classes.
    """
    if candidates is None:
        return scores
    columns = candidates.classes[:, :-1] if scores.ndim == 2 else candidates.classes[:, None, :-1]
    kept = np.take_along_axis(scores, columns, axis=-1)
    n_others = scores.shape[-1] - columns.shape[-1]
    others = (scores.sum(axis=-1, keepdims=True) - kept.sum(axis=-1, keepdims=True)) / n_others
    return np.concatenate([kept, others.astype(scores.dtype)], axis=-1)


def widen(probabilities: FloatArray, candidates: Candidates | None, n_classes: int) -> FloatArray:
    """Expand probabilities of the candidates to all classes.

    Parameters
    ----------
    probabilities : ndarray of shape (n, R)
        Probabilities.
    candidates : Candidates or None
        The classes of the columns; ``None`` returns ``probabilities``.
    n_classes : int
        Number of classes.

    Returns
    -------
    ndarray of shape (n, C)
        The probability of the rest is divided evenly among its classes.
    """
    if candidates is None:
        return probabilities
    columns = candidates.classes[:, :-1]
    each = probabilities[:, -1:] / (n_classes - columns.shape[1])
    wide = np.repeat(each, n_classes, axis=1)
    np.put_along_axis(wide, columns, probabilities[:, :-1], axis=1)
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


def probability_of_given(
    transition: FloatArray, codes: IntArray, candidates: Candidates | None
) -> FloatArray:
    """Probability of the given label if the true class is each of the candidates.

    Parameters
    ----------
    transition : ndarray of shape (C, C)
        The noise matrix.
    codes : ndarray of shape (n,)
        Given labels.
    candidates : Candidates or None
        The classes of the columns; ``None`` for all in order.

    Returns
    -------
    ndarray of shape (n, R)
    """
    if candidates is None:
        return np.ascontiguousarray(transition.T)[codes]
    chances = _with_rest(transition.T).take(_cells(codes, candidates, len(transition)))
    own = candidates.own_share
    chances[:, -1] += own * (transition.diagonal()[codes] - chances[:, -1])
    return chances


def posterior(
    probabilities: FloatArray, transition: FloatArray, codes: IntArray, candidates: Candidates | None
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
    candidates : Candidates or None
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


def posterior_without_own(
    probabilities: FloatArray,
    transition: FloatArray,
    prior_counts: FloatArray,
    codes: IntArray,
    candidates: Candidates | None,
) -> tuple[FloatArray, FloatArray]:
    """Posteriors of the true class, each under the noise matrix as it would be without that sample.

    Parameters
    ----------
    probabilities : ndarray of shape (n, R)
        p(true class | x).
    transition : ndarray of shape (C, C)
        The noise matrix, fitted to some or all of these samples.
    prior_counts : ndarray of shape (C, C)
        Dirichlet counts of its prior.
    codes : ndarray of shape (n,)
        Given labels.
    candidates : Candidates or None
        The classes of the columns; ``None`` for all in order.

    Returns
    -------
    posteriors : ndarray of shape (n, R)
        p(true class | x, given label).
    transition : ndarray of shape (C, C)
        The noise matrix of all samples.
    """
    joint, transition = chances_without_own(probabilities, transition, prior_counts, codes, candidates)
    joint *= probabilities
    joint /= np.maximum(joint.sum(axis=1), NOISE_MODEL.tiny)[:, None]
    return joint, transition


def chances_without_own(
    probabilities: FloatArray,
    transition: FloatArray,
    prior_counts: FloatArray,
    codes: IntArray,
    candidates: Candidates | None,
) -> tuple[FloatArray, FloatArray]:
    """Probability of the given label under the noise matrix as it would be without that sample.

    Otherwise a label that features contradict would itself be evidence that its class is often mistaken for
    the one they suggest; with twenty labels per class that is much (decision 39). The rest of the classes is
    read from the whole matrix.

    Parameters
    ----------
    probabilities : ndarray of shape (n, R)
        p(true class | x).
    transition : ndarray of shape (C, C)
        The noise matrix, fitted to some or all of these samples.
    prior_counts : ndarray of shape (C, C)
        Dirichlet counts of its prior.
    codes : ndarray of shape (n,)
        Given labels.
    candidates : Candidates or None
        The classes of the columns; ``None`` for all in order.

    Returns
    -------
    chances : ndarray of shape (n, R)
        p(given label | true class) for each of the candidates.
    transition : ndarray of shape (C, C)
        The noise matrix of all samples.
    """
    own, _ = posterior(probabilities, transition, codes, candidates)
    counts = pair_counts(own, transition, codes, candidates) + prior_counts
    totals = counts.sum(axis=1)
    transition = counts / totals[:, None]
    chances = probability_of_given(transition, codes, candidates)
    if candidates is None:
        totals_of_columns, kept = totals[None], slice(None)
    else:
        totals_of_columns, kept = totals[candidates.classes[:, :-1]], slice(-1)
    own = own[:, kept]
    without = chances[:, kept]
    without *= totals_of_columns
    without -= own
    without /= np.maximum(totals_of_columns - own, NOISE_MODEL.tiny)
    np.maximum(without, NOISE_MODEL.tiny, out=without)
    return chances, transition


def own_posterior(
    posteriors: FloatArray, transition: FloatArray, codes: IntArray, candidates: Candidates | None
) -> FloatArray:
    """Posteriors of the given class.

    Parameters
    ----------
    posteriors : ndarray of shape (n, R)
        p(true class | x, given label).
    transition : ndarray of shape (C, C)
        The noise matrix that they were computed with.
    codes : ndarray of shape (n,)
        Given labels.
    candidates : Candidates or None
        The classes of the columns; ``None`` for all in order.

    Returns
    -------
    ndarray of shape (n,)
    """
    columns, _ = own_columns(codes, candidates)
    own = posteriors[np.arange(len(codes)), columns]
    if candidates is not None:
        in_rest = columns == posteriors.shape[1] - 1
        own = own * np.where(in_rest, _own_part(transition, codes, candidates), 1)
    return np.asarray(own)


def pair_counts(
    posteriors: FloatArray, transition: FloatArray, codes: IntArray, candidates: Candidates | None
) -> FloatArray:
    """Expected number of samples per true class and given label.

    Parameters
    ----------
    posteriors : ndarray of shape (n, R)
        p(true class | x, given label).
    transition : ndarray of shape (C, C)
        The noise matrix that they were computed with.
    codes : ndarray of shape (n,)
        Given labels.
    candidates : Candidates or None
        The classes of the columns; ``None`` for all in order.

    Returns
    -------
    ndarray of shape (C, C)
        True classes in rows. Samples of the rest count for the given class by its share; those of other
        classes are divided among all wrong ones as the matrix says.
    """
    n_classes = len(transition)
    if candidates is None:
        return class_pair_counts(posteriors, codes)
    counts = _counts_at(_cells(codes, candidates, n_classes), posteriors, n_classes)
    _add_rest(counts, posteriors[:, -1], transition.T, codes, candidates)
    return np.ascontiguousarray(counts.T)


def class_pair_counts(posteriors: FloatArray, codes: IntArray) -> FloatArray:
    """Expected number of samples per true class and given label, from posteriors of all classes.

    Parameters
    ----------
    posteriors : ndarray of shape (n, C)
        Probability of every class.
    codes : ndarray of shape (n,)
        Given labels.

    Returns
    -------
    ndarray of shape (C, C)
        True classes in rows.
    """
    n, n_classes = posteriors.shape
    one_hot = sparse.csr_array((np.ones(n), codes, np.arange(n + 1)), shape=(n, n_classes))
    return np.ascontiguousarray((one_hot.T @ posteriors).T)


def _cells(codes: IntArray, candidates: Candidates, n_classes: int) -> IntArray:
    """(n, R) flat indices of given label and candidate in a table of shape (C, C + 1)."""
    return np.asarray(codes[:, None] * (n_classes + 1) + candidates.classes)


def _mean_wrong(by_given: FloatArray) -> FloatArray:
    """(C,) mean probability of every given label over the other true classes."""
    sums = by_given.sum(axis=1) - by_given.diagonal()
    return np.asarray(sums / max(1, len(by_given) - 1))


def _with_rest(by_given: FloatArray) -> FloatArray:
    """T' (given, true) with a last column for the rest: the mean over the wrong classes."""
    return np.concatenate([by_given, _mean_wrong(by_given)[:, None]], axis=1)


def _own_part(transition: FloatArray, codes: IntArray, candidates: Candidates) -> FloatArray:
    """(n,) part of the rest's posterior that belongs to the given class."""
    right = candidates.own_share * transition.diagonal()[codes]
    wrong = (1 - candidates.own_share) * _mean_wrong(transition.T)[codes]
    return np.asarray(right / np.maximum(right + wrong, NOISE_MODEL.tiny))


def _counts_at(cells: IntArray, posteriors: FloatArray, n_classes: int) -> FloatArray:
    """(given, true) expected numbers, without those of the rest."""
    size = n_classes * (n_classes + 1)
    counts = np.bincount(cells.ravel(), weights=posteriors.ravel(), minlength=size)
    return np.array(counts.reshape(n_classes, n_classes + 1)[:, :-1], dtype=np.float64)


def _add_rest(
    counts: FloatArray, rest: FloatArray, by_given: FloatArray, codes: IntArray, candidates: Candidates
) -> None:
    """Add the rest's posteriors (n,) to (given, true) expected numbers."""
    n_classes = len(counts)
    right = rest * _own_part(by_given.T, codes, candidates)
    sums = _mean_wrong(by_given) * max(1, n_classes - 1)
    wrong = np.bincount(codes, weights=rest - right, minlength=n_classes) / np.maximum(sums, NOISE_MODEL.tiny)
    diagonal = counts.diagonal() + np.bincount(codes, weights=right, minlength=n_classes)
    counts += wrong[:, None] * by_given
    np.fill_diagonal(counts, diagonal)


def fit_transition(
    probabilities: FloatArray,
    codes: IntArray,
    prior_counts: FloatArray,
    candidates: Candidates | None,
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
    candidates : Candidates or None
        The classes of the columns.
    start : ndarray of shape (C, C) or None, default=None
        T to start from; ``None`` starts from the prior.
    n_steps : int, default=20
        Largest number of EM steps; EM stops when the likelihood hardly grows.

    Returns
    -------
    ndarray of shape (C, C)
        T, rows sum to 1.
    """
    transition = prior_counts / prior_counts.sum(axis=1, keepdims=True) if start is None else start
    if candidates is not None:
        return _fit_many_classes(probabilities, codes, candidates, prior_counts.T, transition.T, n_steps)
    last = -np.inf
    for _ in range(n_steps):
        posteriors, likelihood = posterior(probabilities, transition, codes, candidates)
        counts = class_pair_counts(posteriors, codes) + prior_counts
        transition = counts / counts.sum(axis=1, keepdims=True)
        value = float(np.log(np.maximum(likelihood, NOISE_MODEL.tiny)).mean())
        if value - last < NOISE_MODEL.least_em_gain:
            break
        last = value
    return np.asarray(transition)


def _fit_many_classes(
    probabilities: FloatArray,
    codes: IntArray,
    candidates: Candidates,
    prior_counts: FloatArray,
    by_given: FloatArray,
    n_steps: int,
) -> FloatArray:
    """The same EM on (given, true) tables, where a row's candidates are close together in memory."""
    prior_counts = np.ascontiguousarray(prior_counts)
    cells = _cells(codes, candidates, len(by_given))
    own = candidates.own_share
    last = -np.inf
    for _ in range(n_steps):
        joint = _with_rest(by_given).take(cells)
        joint[:, -1] += own * (by_given.diagonal()[codes] - joint[:, -1])
        joint *= probabilities
        likelihood = np.maximum(joint.sum(axis=1), NOISE_MODEL.tiny)
        joint /= likelihood[:, None]
        counts = _counts_at(cells, joint, len(by_given))
        _add_rest(counts, joint[:, -1], by_given, codes, candidates)
        counts += prior_counts
        by_given = counts / counts.sum(axis=0)
        value = float(np.log(likelihood).mean())
        if value - last < NOISE_MODEL.least_em_gain:
            break
        last = value
    return np.ascontiguousarray(by_given.T)


def is_diagonal_dominant(transition: FloatArray) -> bool:
    """Return whether the right label is about the most frequent one in every class.

    If it is not, the fit has probably exchanged classes: the likelihood does not change if classes exchange
    their names.

    Parameters
    ----------
    transition : ndarray of shape (C, C)
        The noise matrix.

    Returns
    -------
    bool
    """
    return bool((np.diag(transition) >= NOISE_MODEL.dominance * transition.max(axis=1)).all())
