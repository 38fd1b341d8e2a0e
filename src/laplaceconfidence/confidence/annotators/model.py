"""The noise matrices of annotators, fitted by expectation maximization (EM).

    p(labels of sample i) = sum_z p_iz prod_l T_a(l)[z, y_l]

``matrix_prior.py`` has the prior of T_a around a matrix that all annotators share. The rows of the shared
matrix have a Dirichlet prior of a fitted concentration, with errors that are all equally likely as its mean.
An annotator of few labels is therefore judged by all labels together, one of many labels by their own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import gammaln, logsumexp

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.annotators.labels import CodedLabels
from laplaceconfidence.confidence.annotators.matrix_prior import (
    MatrixPrior,
    PriorCounts,
    error_shares,
    fit_prior,
    right_counts,
)
from laplaceconfidence.data.labels import MISSING

MOST_STEPS = 100
_LEAST_CHANGE = 1e-4  # of the posteriors, on average, where EM stops
_STEPS_PER_PRIOR = 3  # the prior, which takes longest, is fitted again only then
_CONCENTRATIONS = (0.5, 1e4)  # labels per class that a prior may be worth
_TINY = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class AnnotatorModel:
    """The fitted noise matrices.

    Attributes
    ----------
    shared : ndarray of shape (C, C)
        The matrix that all annotators share; rows sum to 1.
    accuracy : ndarray of shape (A, C)
        Expected share of right labels, per annotator and true class.
    counts : ndarray of shape (P, C)
        Expected number of samples of every true class that were given the label of a pair.
    prior : MatrixPrior
        The fitted prior of the matrices.
    prior_counts : PriorCounts
        The prior of every row.
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
    accuracy: FloatArray
    counts: FloatArray
    prior: MatrixPrior
    prior_counts: PriorCounts
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
        counted = np.zeros((n_classes, n_classes))
        pairs = np.flatnonzero(labels.pair_annotators == annotator)
        counted[:, labels.pair_codes[pairs]] = self.counts[pairs].T
        np.fill_diagonal(counted, 0)
        errors = self.prior_counts.of_errors[annotator][:, None] * error_shares(self.shared) + counted
        accuracy = self.accuracy[annotator]
        matrix = (1 - accuracy)[:, None] * errors / errors.sum(axis=1, keepdims=True)
        np.fill_diagonal(matrix, accuracy)
        return np.asarray(matrix)


def fit_annotators(
    labels: CodedLabels,
    log_prior: FloatArray,
    start: FloatArray,
    verified: IntArray | None = None,
    *,
    prior: MatrixPrior | None = None,
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
    prior : MatrixPrior or None, default=None
        The prior to start from.
    n_steps : int, default=100
        Largest number of EM steps.

    Returns
    -------
    AnnotatorModel
    """
    known = np.flatnonzero(verified != MISSING) if verified is not None else np.empty(0, dtype=np.int64)
    posteriors = start.copy()
    prior = MatrixPrior.even() if prior is None else prior
    before = np.full_like(posteriors, np.inf)
    for step in range(n_steps):
        if verified is not None:
            posteriors[known] = 0
            posteriors[known, verified[known]] = 1
        counts = labels.by_sample.T @ posteriors
        shared = _shared_matrix(labels, counts)
        if step % _STEPS_PER_PRIOR == 0:
            prior_counts, prior = fit_prior(labels, counts, shared, prior)
        accuracy, chances = _expected_chances(labels, counts, shared, prior_counts)
        log_chances = np.log(np.maximum(chances, _TINY))
        log_likelihoods = labels.by_sample @ log_chances
        joint = log_prior + log_likelihoods
        per_sample = logsumexp(joint, axis=1)
        posteriors = np.exp(joint - per_sample[:, None])
        if step % _STEPS_PER_PRIOR == _STEPS_PER_PRIOR - 1:
            if float(np.abs(posteriors - before).mean()) < _LEAST_CHANGE:
                break
            before = posteriors.copy()
    if verified is not None:
        posteriors[known] = 0
        posteriors[known, verified[known]] = 1
    score = float(per_sample.mean())
    return AnnotatorModel(
        shared, accuracy, counts, prior, prior_counts, log_chances, log_likelihoods, posteriors, score
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


def _expected_chances(
    labels: CodedLabels, counts: FloatArray, shared: FloatArray, prior: PriorCounts
) -> tuple[FloatArray, FloatArray]:
    """(A, C) expected share of right labels, and (P, C) expected T_a[z, y] of every pair."""
    annotators, codes = labels.pair_annotators, labels.pair_codes
    right, totals = right_counts(labels, counts), labels.by_annotator @ counts
    accuracy = (prior.concentration * prior.accuracy + right) / (prior.concentration + totals)
    of_errors = prior.of_errors[annotators]
    wrong = np.maximum(totals - right, 0)[annotators]
    chances = (of_errors * error_shares(shared).T[codes] + counts) / (of_errors + wrong)
    chances *= (1 - accuracy)[annotators]
    chances[np.arange(len(codes)), codes] = accuracy[annotators, codes]
    return accuracy, chances


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
