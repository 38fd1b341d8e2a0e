"""The prior of annotators' noise matrices against loops over a grid, and what it believes."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose
from scipy.special import betaln, expit, logit

from laplaceconfidence.confidence.annotators import matrix_prior
from laplaceconfidence.confidence.annotators.labels import CodedLabels
from laplaceconfidence.confidence.annotators.matrix_prior import MatrixPrior, fit_prior
from laplaceconfidence.confidence.annotators.model import fit_annotators

SKILLS, CONCENTRATIONS = matrix_prior._SKILLS, matrix_prior._CONCENTRATIONS


def labels_of(matrices: np.ndarray, n: int, share: float, seed: int) -> tuple[CodedLabels, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, matrices.shape[1], n)
    samples, annotators = np.nonzero(rng.random((n, len(matrices))) < share)
    chances = matrices[annotators, truth[samples]].cumsum(axis=1)
    codes = (rng.random((len(samples), 1)) > chances).sum(axis=1)
    return CodedLabels(samples, annotators, codes, n, len(matrices), matrices.shape[1]), truth


def one_coin(accuracy: float, n_classes: int) -> np.ndarray:
    matrix = np.full((n_classes, n_classes), (1 - accuracy) / (n_classes - 1))
    np.fill_diagonal(matrix, accuracy)
    return matrix


def test_expected_accuracy_is_that_of_a_loop_over_skills_and_concentrations():
    labels, truth = labels_of(np.stack([one_coin(a, 3) for a in (0.9, 0.6, 0.3)]), 60, 0.7, 0)
    counts = labels.by_sample.T @ np.eye(3)[truth]
    shared = one_coin(0.65, 3)
    found, _ = fit_prior(labels, counts, shared, MatrixPrior.even())
    totals = labels.by_annotator @ counts
    right = matrix_prior.right_counts(labels, counts)
    for annotator in range(3):
        of_skills = np.zeros(len(SKILLS))
        means = np.zeros((len(SKILLS), 3))
        for k, skill in enumerate(SKILLS):
            mean = expit(logit(0.65) + skill)
            for z in range(3):
                hits, misses = right[annotator, z], totals[annotator, z] - right[annotator, z]
                a, b = CONCENTRATIONS * mean, CONCENTRATIONS * (1 - mean)
                evidence = np.exp(betaln(a + hits, b + misses) - betaln(a, b)) / len(CONCENTRATIONS)
                of_skills[k] += np.log(evidence.sum())
                means[k, z] = evidence / evidence.sum() @ ((a + hits) / (a + b + hits + misses))
        weights = np.exp(of_skills - of_skills.max())
        expected = weights / weights.sum() @ means
        counted = (found.concentration * found.accuracy)[annotator] + right[annotator]
        assert_allclose(counted / (found.concentration + totals)[annotator], expected, rtol=1e-6)


def test_kinds_of_annotators_are_found():
    matrices = np.stack([one_coin(0.9, 5)] * 15 + [one_coin(0.2, 5)] * 15)
    labels, truth = labels_of(matrices, 500, 0.2, 1)
    posteriors = np.eye(5)[truth]
    model = fit_annotators(labels, np.log(posteriors + 1e-12), posteriors)
    between = np.abs(SKILLS - logit(0.6) + logit(np.diag(model.shared).mean())) < 0.8
    assert model.prior.skills[between].sum() < 0.05


def test_one_odd_row_is_believed_although_all_others_are_alike():
    matrices = np.stack([one_coin(0.9, 4)] * 20)
    matrices[0, 2] = [0.02, 0.9, 0.06, 0.02]  # takes class 2 for class 1
    labels, truth = labels_of(matrices, 400, 0.4, 2)
    start = (labels.votes() + 0.25) / (labels.votes() + 0.25).sum(axis=1, keepdims=True)
    model = fit_annotators(labels, np.full((400, 4), -np.log(4)), start)
    assert model.matrix(labels, 0)[2, 1] > 0.7
    assert model.matrix(labels, 1)[2, 1] < 0.15
    assert (model.posteriors.argmax(axis=1) == truth).mean() > 0.97


def test_an_annotator_without_labels_is_expected_to_be_like_the_others():
    matrices = np.stack([one_coin(0.8, 3)] * 6)
    labels, _ = labels_of(matrices, 300, 0.5, 3)
    wider = CodedLabels(labels.samples, labels.annotators, labels.codes, 300, 7, 3)
    start = (labels.votes() + 1 / 3) / (labels.votes() + 1 / 3).sum(axis=1, keepdims=True)
    model = fit_annotators(wider, np.full((300, 3), -np.log(3)), start)
    assert_allclose(model.matrix(wider, 6).sum(axis=1), 1)
    assert_allclose(np.diag(model.matrix(wider, 6)), np.diag(model.shared), atol=0.05)
