"""The EM of the annotators' noise matrices against loops over labels, and its invariances."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from laplaceconfidence.confidence.annotators.labels import CodedLabels
from laplaceconfidence.confidence.annotators.model import class_shares, fit_annotators, support_of_labels

N, ANNOTATORS, CLASSES = 60, 5, 3


def random_labels(seed: int) -> CodedLabels:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, CLASSES, N)
    samples, annotators = np.nonzero(rng.random((N, ANNOTATORS)) < 0.6)
    right = rng.random(len(samples)) < np.linspace(0.5, 0.95, ANNOTATORS)[annotators]
    codes = np.where(right, truth[samples], rng.integers(0, CLASSES, len(samples)))
    return CodedLabels(samples, annotators, codes, N, ANNOTATORS, CLASSES)


def fit(labels: CodedLabels):
    start = labels.votes() + 1
    start /= start.sum(axis=1, keepdims=True)
    return fit_annotators(labels, np.full((labels.n_samples, CLASSES), -np.log(CLASSES)), start)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000))
def test_posteriors_are_those_of_a_loop_over_all_labels(seed):
    labels = random_labels(seed)
    model = fit(labels)
    matrices = [model.matrix(labels, annotator) for annotator in range(ANNOTATORS)]
    for matrix in matrices:
        assert_allclose(matrix.sum(axis=1), 1)
    expected = np.full((N, CLASSES), 1 / CLASSES)
    for sample, annotator, code in zip(labels.samples, labels.annotators, labels.codes, strict=True):
        expected[sample] *= matrices[annotator][:, code]
    assert model.score == pytest.approx(np.log(expected.sum(axis=1)).mean())
    expected /= expected.sum(axis=1, keepdims=True)
    assert_allclose(model.posteriors, expected, atol=1e-9)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000))
def test_support_leaves_out_the_label_itself(seed):
    labels = random_labels(seed)
    model = fit(labels)
    flat = np.full((N, CLASSES), -np.log(CLASSES))
    found = support_of_labels(labels, flat, model)
    matrices = [model.matrix(labels, annotator) for annotator in range(ANNOTATORS)]
    for left_out in range(0, len(labels.codes), 7):
        chances = np.ones(CLASSES)
        for other in np.flatnonzero(labels.samples == labels.samples[left_out]):
            if other != left_out:
                chances *= matrices[labels.annotators[other]][:, labels.codes[other]]
        assert found[left_out] == pytest.approx(chances[labels.codes[left_out]] / chances.sum())


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000))
def test_the_order_of_labels_samples_and_annotators_does_not_matter(seed):
    labels = random_labels(seed)
    rng = np.random.default_rng(seed)
    order, rows, who = rng.permutation(len(labels.codes)), rng.permutation(N), rng.permutation(ANNOTATORS)
    changed = CodedLabels(
        rows[labels.samples[order]],
        who[labels.annotators[order]],
        labels.codes[order],
        N,
        ANNOTATORS,
        CLASSES,
    )
    assert_allclose(fit(changed).posteriors[rows], fit(labels).posteriors, atol=1e-6)


def test_verified_classes_determine_the_matrices():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, CLASSES, 3_000)
    given = (truth + (rng.random(3_000) < 0.7)) % CLASSES  # wrong more often than right
    labels = CodedLabels(np.arange(3_000), np.zeros(3_000, dtype=np.int64), given, 3_000, 1, CLASSES)
    start = np.full((3_000, CLASSES), 1 / CLASSES)
    model = fit_annotators(labels, np.log(start), start, verified=truth)
    counted = np.array(
        [[((truth == z) & (given == y)).sum() for y in range(CLASSES)] for z in range(CLASSES)]
    )
    assert_allclose(model.matrix(labels, 0), counted / counted.sum(axis=1, keepdims=True), atol=0.02)


def test_shares_of_classes_are_even_unless_they_clearly_differ():
    by_chance = np.eye(4)[np.repeat(np.arange(4), (108, 96, 102, 94))]
    even, counted = class_shares(by_chance), by_chance.mean(axis=0)
    assert np.abs(even - 0.25).max() < 0.3 * np.abs(counted - 0.25).max()
    skewed = (np.arange(400) % 10 != 0).astype(float)
    shares = class_shares(np.stack([skewed, 1 - skewed], axis=1))
    np.testing.assert_allclose(shares, [0.9, 0.1], atol=0.01)
    np.testing.assert_allclose(shares.sum(), 1)
