"""The noise matrices of annotators, fitted by expectation maximization (EM).

    p(labels of sample i) = sum_z p_iz prod_l T_a(l)[z, y_l]

The row z of the matrix of annotator a has a Dirichlet prior with the mean

    m_a[z, z] = sigmoid(logit(D_z) + s_a),      m_a[z, y] = (1 - m_a[z, z]) O[z, y]   for y != z,

where D and O are the diagonal and the proportions of the errors of the matrix that all annotators share, and
the skill s_a has a normal prior. The rows of the shared matrix have a Dirichlet prior as well, with errors
that are all equally likely as its mean. Both concentrations and the variance of the skills are fitted. An
annotator of few labels is therefore judged by all labels together, one of many labels by their own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, gammaln, logit, logsumexp

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.annotators.labels import CodedLabels
from laplaceconfidence.data.labels import MISSING

MOST_STEPS = 100
_LEAST_GAIN = 1e-6  # of the log-likelihood per sample, where EM stops
_NEWTON_STEPS = 5  # at first; later steps begin near the maximum
_LARGEST_NEWTON_STEP = 2.0
_CONCENTRATIONS = (0.5, 1e4)  # labels per class that a prior may be worth
_LEAST_SHARE = 1e-6  # of right and of wrong labels
_LEAST_VARIANCE = 1e-3  # of the skills
_TINY = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class AnnotatorModel:
    """The fitted noise matrices.

    Attributes
    ----------
    shared : ndarray of shape (C, C)
        The matrix that all annotators share; rows sum to 1.
    expected_accuracy : ndarray of shape (A, C)
        The prior mean of the share of right labels, per annotator and true class.
    counts : ndarray of shape (P, C)
        Expected number of samples of every true class that were given the label of a pair.
    concentration : float
        Number of labels per true class that the prior is worth.
    log_chances : ndarray of shape (P, C)
        log T_a[z, y] of every pair of annotator and label.
    log_likelihoods : ndarray of shape (n, C)
        log of the product over the labels of a sample, for every true class.
    posteriors : ndarray of shape (n, C)
        p(true class | evidence, labels).
    score : float
        Mean log-likelihood per sample.
    """

    shared: FloatArray
    expected_accuracy: FloatArray
    counts: FloatArray
    concentration: float
    log_chances: FloatArray
    log_likelihoods: FloatArray
    posteriors: FloatArray
    score: float

    def matrix(self, labels: CodedLabels, annotator: int) -> FloatArray:
        """The noise matrix of an annotator.

        Parameters
        ----------
        labels : CodedLabels
            The labels of the fit.
        annotator : int
            Number of the annotator.

        Returns
        -------
        ndarray of shape (C, C)
            Rows sum to 1.
        """
        n_classes = labels.n_classes
        mean = _with_diagonal(_error_shares(self.shared), self.expected_accuracy[annotator])
        counted = np.zeros((n_classes, n_classes))
        pairs = np.flatnonzero(labels.pair_annotators == annotator)
        counted[:, labels.pair_codes[pairs]] = self.counts[pairs].T
        matrix = self.concentration * mean + counted
        return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))


def fit_annotators(
    labels: CodedLabels,
    log_prior: FloatArray,
    start: FloatArray,
    verified: IntArray | None = None,
    n_steps: int = MOST_STEPS,
) -> AnnotatorModel:
    """Fit the noise matrices, with the class probabilities held fixed.

    Parameters
    ----------
    labels : CodedLabels
        The labels.
    log_prior : ndarray of shape (n, C)
        Logarithms of the class probabilities of every sample without its labels.
    start : ndarray of shape (n, C)
        Posteriors to start from.
    verified : ndarray of shape (n,) or None, default=None
        Verified labels, ``MISSING`` where there is none; they are certain.
    n_steps : int, default=100
        Largest number of EM steps.

    Returns
    -------
    AnnotatorModel
    """
    known = np.flatnonzero(verified != MISSING) if verified is not None else np.empty(0, dtype=np.int64)
    posteriors = start.copy()
    skills: FloatArray = np.zeros(labels.n_annotators)
    variance, concentration, last = 1.0, 1.0, -np.inf
    for step in range(n_steps):
        if verified is not None:
            posteriors[known] = 0
            posteriors[known, verified[known]] = 1
        counts = labels.by_sample.T @ posteriors
        totals = labels.by_annotator @ counts
        shared = _shared_matrix(labels, counts)
        skills, variance, accuracy = _fit_skills(
            labels, counts, totals, shared, skills, variance, _NEWTON_STEPS if step == 0 else 1
        )
        means = _prior_means(labels, shared, accuracy)
        if step % 5 == 0:
            concentration = _fit_concentration(means, counts, totals)
        chances = (concentration * means + counts) / (concentration + totals[labels.pair_annotators])
        log_chances = np.log(np.maximum(chances, _TINY))
        log_likelihoods = labels.by_sample @ log_chances
        joint = log_prior + log_likelihoods
        per_sample = logsumexp(joint, axis=1)
        posteriors = np.exp(joint - per_sample[:, None])
        score = float(per_sample.mean())
        if abs(score - last) < _LEAST_GAIN:
            break
        last = score
    if verified is not None:
        posteriors[known] = 0
        posteriors[known, verified[known]] = 1
    return AnnotatorModel(
        shared, accuracy, counts, concentration, log_chances, log_likelihoods, posteriors, score
    )


def class_shares(posteriors: FloatArray) -> FloatArray:
    """Shares of the classes, with a Dirichlet prior around equal shares whose concentration is fitted.

    The shares decide where the labels of a sample are tied: chance differences between them would decide all
    ties in favor of the same classes.

    Parameters
    ----------
    posteriors : ndarray of shape (n, C)
        Probability of every class.

    Returns
    -------
    ndarray of shape (C,)
        They sum to 1.
    """
    counts = posteriors.sum(axis=0)
    even = np.full(len(counts), 1 / len(counts))
    concentration = _fit_concentration(even, counts, counts.sum())
    return np.asarray((concentration * even + counts) / (concentration + counts.sum()))


def _shared_matrix(labels: CodedLabels, counts: FloatArray) -> FloatArray:
    """(C, C) the noise matrix of all labels; where they are few, all errors are about equally likely."""
    n_classes = labels.n_classes
    of_pairs = (labels.by_code @ counts).T
    # One right and half a wrong label more, so that no share is 0 or 1.
    right = (np.trace(of_pairs) + 1) / (of_pairs.sum() + 1.5)
    even = np.full((n_classes, n_classes), (1 - right) / (n_classes - 1))
    np.fill_diagonal(even, right)
    matrix = _fit_concentration(even, of_pairs, of_pairs.sum(axis=1)) * even + of_pairs
    return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))


def _error_shares(shared: FloatArray) -> FloatArray:
    """(C, C) the shares of every wrong label among the errors of a class; the diagonal is 0."""
    errors = shared.copy()
    np.fill_diagonal(errors, 0)
    return np.asarray(errors / errors.sum(axis=1, keepdims=True))


def _with_diagonal(error_shares: FloatArray, accuracy: FloatArray) -> FloatArray:
    matrix = (1 - accuracy)[:, None] * error_shares
    np.fill_diagonal(matrix, accuracy)
    return np.asarray(matrix)


def _prior_means(labels: CodedLabels, shared: FloatArray, accuracy: FloatArray) -> FloatArray:
    """(P, C) the prior mean of T_a[z, y] of every pair."""
    is_right = labels.pair_codes[:, None] == np.arange(labels.n_classes)
    of_annotator = accuracy[labels.pair_annotators]
    return np.where(is_right, of_annotator, (1 - of_annotator) * _error_shares(shared).T[labels.pair_codes])


def _fit_skills(
    labels: CodedLabels,
    counts: FloatArray,
    totals: FloatArray,
    shared: FloatArray,
    skills: FloatArray,
    variance: float,
    n_steps: int,
) -> tuple[FloatArray, float, FloatArray]:
    """Newton steps on the skills, and the variance that they suggest; skills, variance, accuracies (A, C)."""
    right = np.zeros_like(totals)
    right[labels.pair_annotators, labels.pair_codes] = counts[np.arange(len(counts)), labels.pair_codes]
    of_class = logit(np.clip(np.diag(shared), _LEAST_SHARE, 1 - _LEAST_SHARE))
    for _ in range(n_steps):
        accuracy = expit(of_class + skills[:, None])
        slope = (right - totals * accuracy).sum(axis=1) - skills / variance
        curvature = (totals * accuracy * (1 - accuracy)).sum(axis=1) + 1 / variance
        skills = skills + np.clip(slope / curvature, -_LARGEST_NEWTON_STEP, _LARGEST_NEWTON_STEP)
    present = totals.any(axis=1)
    variance = max(float((skills**2 + 1 / curvature)[present].mean()), _LEAST_VARIANCE)
    accuracy = np.clip(expit(of_class + skills[:, None]), _LEAST_SHARE, 1 - _LEAST_SHARE)
    return skills, variance, accuracy


def _fit_concentration(means: FloatArray, counts: FloatArray, totals: FloatArray | float) -> float:
    """The concentration under which the expected counts are most likely (Dirichlet-multinomial)."""

    def loss(logarithm: float) -> float:
        c = np.exp(logarithm)
        of_pairs = gammaln(c * means + counts) - gammaln(c * means)  # 0 for labels that were never given
        of_rows = gammaln(c) - gammaln(c + totals)
        return -float(np.sum(of_pairs) + np.sum(of_rows))

    found = minimize_scalar(loss, bounds=np.log(_CONCENTRATIONS), method="bounded", options={"xatol": 0.05})
    return float(np.exp(found.x))


def support_of_labels(labels: CodedLabels, log_prior: FloatArray, model: AnnotatorModel) -> FloatArray:
    """Probability of every label's class by the evidence and the *other* labels of its sample.

    Parameters
    ----------
    labels : CodedLabels
        The labels.
    log_prior : ndarray of shape (n, C)
        Logarithms of the class probabilities without labels.
    model : AnnotatorModel
        The fitted matrices.

    Returns
    -------
    ndarray of shape (L,)
    """
    joint = (log_prior + model.log_likelihoods)[labels.samples] - model.log_chances[labels.pair_of]
    chosen = joint[np.arange(len(joint)), labels.codes]
    return np.asarray(np.exp(chosen - logsumexp(joint, axis=1)))
