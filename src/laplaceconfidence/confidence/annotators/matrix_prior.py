"""What is known about the noise matrix of an annotator before their own labels are counted.

The row z of the matrix of annotator a is a share of right labels and a distribution of the errors:

    T_a[z, z] ~ Beta with the mean sigmoid(logit(D_z) + s_a)
    T_a[z, y] / (1 - T_a[z, z]) for y != z ~ Dirichlet with the mean O[z, y]

where D and O are the diagonal and the proportions of the errors of the matrix that all annotators share. How
the skills s_a are distributed is fitted: a distribution over a grid, drawn to a normal one as far as this
makes the labels of annotators that it was not fitted on more likely. Annotators of few kinds (careful ones,
spammers) are found as such, and those of all degrees are not forced into kinds. The concentrations of the
Beta and the Dirichlet distributions have fitted distributions as well, so that one odd row (a class that one
annotator takes for another) is believed although nearly all rows are alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, gammaln, logit, logsumexp

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.confidence.annotators.labels import CodedLabels

_SKILLS = np.linspace(-6, 6, 25)  # log-odds; from always wrong to always right
_CONCENTRATIONS = np.array([3.0, 30.0, 300.0, 1e4])  # labels of a class that the prior may be worth
_NORMAL_WEIGHTS = (0.5, 2.0, 8.0, 32.0, 1e3)  # annotators that the normal distribution may be worth
_LEAST_VARIANCE = 0.05  # of the skills: below, the grid does not resolve it
_LEAST_SHARE = 1e-6  # of right and of wrong labels
_ENTRIES_OF_A_BLOCK = 500_000
_TINY = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class MatrixPrior:
    """Fitted distributions of skills and of concentrations.

    Attributes
    ----------
    skills : ndarray of shape (25,)
        Weight of every skill of the grid.
    of_right, of_errors : ndarray of shape (4,)
        Weight of every concentration, of the shares of right labels and of the errors.
    """

    skills: FloatArray
    of_right: FloatArray
    of_errors: FloatArray

    @classmethod
    def even(cls) -> MatrixPrior:
        """The prior before anything was fitted: all equally likely."""
        k, j = len(_SKILLS), len(_CONCENTRATIONS)
        return cls(np.full(k, 1 / k), np.full(j, 1 / j), np.full(j, 1 / j))

    @property
    def typical_concentration(self) -> float:
        """Geometric mean of the concentrations of the shares of right labels."""
        return float(np.exp(self.of_right @ np.log(_CONCENTRATIONS)))


@dataclass(frozen=True, slots=True, eq=False)
class PriorCounts:
    """The prior of every row after the labels said which skill and concentrations are likely.

    The mean over skills and concentrations is that of one Beta and one Dirichlet distribution per row.

    Attributes
    ----------
    accuracy : ndarray of shape (A, C)
        Expected share of right labels.
    concentration, of_errors : ndarray of shape (A, C)
        Number of labels, and of wrong labels, that the expectation is worth.
    """

    accuracy: FloatArray
    concentration: FloatArray
    of_errors: FloatArray


def fit_prior(
    labels: CodedLabels, counts: FloatArray, shared: FloatArray, prior: MatrixPrior
) -> tuple[PriorCounts, MatrixPrior]:
    """One EM step on skills and concentrations.

    Parameters
    ----------
    labels : CodedLabels
        The labels.
    counts : ndarray of shape (P, C)
        Expected number of samples of every true class that were given the label of a pair.
    shared : ndarray of shape (C, C)
        The matrix that all annotators share.
    prior : MatrixPrior
        The prior so far.

    Returns
    -------
    PriorCounts
        The prior of every row, given the counts.
    MatrixPrior
        The fitted prior.
    """
    totals = labels.by_annotator @ counts
    right = right_counts(labels, counts)
    present = totals.any(axis=1)
    accuracy, concentration = np.empty_like(totals), np.empty_like(totals)
    evidence = np.empty((len(_SKILLS), labels.n_annotators))
    of_right = np.zeros_like(prior.of_right)
    per_annotator = len(_SKILLS) * len(_CONCENTRATIONS) * labels.n_classes
    step = max(1, _ENTRIES_OF_A_BLOCK // per_annotator)
    for start in range(0, labels.n_annotators, step):
        block = slice(start, start + step)
        evidence[:, block], accuracy[block], concentration[block], weights = _right_labels(
            right[block], totals[block], np.diag(shared), prior
        )
        of_right += weights
    of_errors, error_weights = _errors(labels, counts, totals - right, shared, prior.of_errors)
    fitted = MatrixPrior(
        _fit_skills(evidence[:, present], prior.skills), _shares(of_right), _shares(error_weights)
    )
    return PriorCounts(accuracy, concentration, of_errors), fitted


def right_counts(labels: CodedLabels, counts: FloatArray) -> FloatArray:
    """(A, C) expected number of right labels per annotator and class."""
    right = np.zeros((labels.n_annotators, labels.n_classes))
    right[labels.pair_annotators, labels.pair_codes] = counts[np.arange(len(counts)), labels.pair_codes]
    return right


def error_shares(shared: FloatArray) -> FloatArray:
    """(C, C) the shares of every wrong label among the errors of a class; the diagonal is 0."""
    errors = shared.copy()
    np.fill_diagonal(errors, 0)
    return np.asarray(errors / errors.sum(axis=1, keepdims=True))


def _right_labels(
    right: FloatArray, totals: FloatArray, of_class: FloatArray, prior: MatrixPrior
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Log-evidence (skills, A), accuracy and concentration (A, C), weights of concentrations (4,)."""
    odds = logit(np.clip(of_class, _LEAST_SHARE, 1 - _LEAST_SHARE))
    means = np.clip(expit(odds + _SKILLS[:, None]), _LEAST_SHARE, 1 - _LEAST_SHARE)[:, None, None]
    c = _CONCENTRATIONS[:, None, None]  # skills, concentrations, annotators, classes
    a, b = c * means, c * (1 - means)
    evidence = gammaln(a + right) + gammaln(b + (totals - right)) - gammaln(a) - gammaln(b)
    evidence += gammaln(c) - gammaln(c + totals) + np.log(prior.of_right)[:, None, None]
    of_rows = logsumexp(evidence, axis=1)
    of_skills = of_rows.sum(axis=2)
    weights = np.exp(evidence - of_rows[:, None]) * _posterior(prior.skills, of_skills)[:, None, :, None]
    per_label = weights / (c + totals)
    of_prior = (per_label * c).sum(axis=(0, 1))
    accuracy = (per_label * a).sum(axis=(0, 1)) / of_prior
    of_present = weights[:, :, totals.any(axis=1)].sum(axis=(0, 2, 3))
    return of_skills, accuracy, of_prior / per_label.sum(axis=(0, 1)), of_present


def _errors(
    labels: CodedLabels, counts: FloatArray, wrong: FloatArray, shared: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Number of wrong labels that the shared proportions are worth (A, C), and weights of concentrations."""
    pairs = np.arange(len(counts))
    proportions = error_shares(shared).T[labels.pair_codes]
    proportions[pairs, labels.pair_codes] = 1.0  # of no account: these labels are right
    counts = counts.copy()
    counts[pairs, labels.pair_codes] = 0
    wrong = np.maximum(wrong, 0)
    evidence = np.stack(
        [
            labels.by_annotator @ (gammaln(c * proportions + counts) - gammaln(c * proportions))
            + gammaln(c)
            - gammaln(c + wrong)
            for c in _CONCENTRATIONS
        ]
    )
    responsible = _posterior(weights, evidence)
    per_label = responsible / (_CONCENTRATIONS[:, None, None] + wrong)
    of_prior = (per_label * _CONCENTRATIONS[:, None, None]).sum(axis=0)
    present = labels.by_annotator.sum(axis=1) > 0
    return of_prior / per_label.sum(axis=0), responsible[:, present].sum(axis=(1, 2))


def _fit_skills(evidence: FloatArray, weights: FloatArray) -> FloatArray:
    """Weights of the skills: what annotators suggest, and a normal distribution as if it were several.

    How many is decided by the likelihood of every annotator under what the others suggest.
    """
    responsible = _posterior(weights, evidence)
    n_annotators = evidence.shape[1]
    total = responsible.sum(axis=1)
    variance = max(float(total @ _SKILLS**2) / n_annotators, _LEAST_VARIANCE)
    normal = np.exp(-(_SKILLS**2) / (2 * variance))
    normal /= normal.sum()

    def of_left_out(worth: float) -> float:
        of_others = total[:, None] - responsible + worth * normal[:, None]
        return float(
            logsumexp(np.log(of_others / (n_annotators - 1 + worth) + _TINY) + evidence, axis=0).sum()
        )

    worth = max(_NORMAL_WEIGHTS, key=of_left_out)
    return np.asarray((total + worth * normal) / (n_annotators + worth))


def _posterior(weights: FloatArray, evidence: FloatArray) -> FloatArray:
    """Probabilities over the first axis of the log-evidence."""
    joint = np.log(weights + _TINY).reshape(-1, *[1] * (evidence.ndim - 1)) + evidence
    return np.asarray(np.exp(joint - logsumexp(joint, axis=0)))


def _shares(weights: FloatArray) -> FloatArray:
    """Shares, with one count more that is spread evenly."""
    return np.asarray((weights + 1 / len(weights)) / (weights.sum() + 1))
