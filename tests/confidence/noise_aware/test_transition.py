"""Posteriors and counts under a noise matrix, and many classes reduced to candidates."""

import numpy as np

from laplaceconfidence.confidence.noise_aware.noise_model import Pool
from laplaceconfidence.confidence.noise_aware.transition import (
    Candidates,
    fit_transition,
    is_diagonal_dominant,
    likely_classes,
    narrow,
    own_columns,
    own_posterior,
    pair_counts,
    posterior,
    posterior_without_own,
    uniform_noise,
    widen,
)


def test_posteriors_and_counts_add_up() -> None:
    rng = np.random.default_rng(0)
    p, codes = rng.dirichlet(np.ones(3), 50), rng.integers(0, 3, 50)
    transition = rng.dirichlet(np.ones(3), 3)
    posteriors, chance = posterior(p, transition, codes, None)
    naive = np.array([p[i] * transition[:, codes[i]] for i in range(50)])
    np.testing.assert_allclose(chance, naive.sum(axis=1))
    np.testing.assert_allclose(posteriors, naive / naive.sum(axis=1, keepdims=True))
    counts = pair_counts(posteriors, transition, codes, None)
    np.testing.assert_allclose(counts.sum(axis=0), np.bincount(codes, minlength=3))


def test_no_label_supports_the_doubt_about_itself() -> None:
    rng = np.random.default_rng(0)
    p, codes = rng.dirichlet(np.ones(3), 30), rng.integers(0, 3, 30)
    transition, prior = rng.dirichlet(np.ones(3), 3), rng.random((3, 3))
    posteriors, of_all = posterior_without_own(p, transition, prior, codes, None)
    before, _ = posterior(p, transition, codes, None)
    for i in range(30):
        others = np.arange(30) != i
        counts = pair_counts(before[others], transition, codes[others], None) + prior
        naive = p[i] * (counts / counts.sum(axis=1, keepdims=True))[:, codes[i]]
        np.testing.assert_allclose(posteriors[i], naive / naive.sum())
    counts = pair_counts(before, transition, codes, None) + prior
    np.testing.assert_allclose(of_all, counts / counts.sum(axis=1, keepdims=True))


def test_the_same_with_candidates_that_are_nearly_all_classes() -> None:
    rng = np.random.default_rng(1)
    p, codes = rng.dirichlet(np.ones(4), 30), rng.integers(0, 3, 30)
    p[:, 3] = 0  # the rest is impossible, so that the candidates are all that counts
    p /= p.sum(axis=1, keepdims=True)
    transition, prior = rng.dirichlet(np.ones(4), 4), rng.random((4, 4))
    classes = np.tile([2, 0, 1, 4], (30, 1))
    candidates = Candidates(classes, np.zeros(30))
    narrowed, matrix = posterior_without_own(p[:, [2, 0, 1, 3]], transition, prior, codes, candidates)
    everything, same_matrix = posterior_without_own(p, transition, prior, codes, None)
    np.testing.assert_allclose(narrowed, everything[:, [2, 0, 1, 3]], atol=1e-12)
    np.testing.assert_allclose(matrix, same_matrix)


def test_renamed_classes_are_recognized() -> None:
    assert is_diagonal_dominant(uniform_noise(0.8, np.full(3, 1 / 3)))
    assert not is_diagonal_dominant(np.eye(3)[[1, 2, 0]])


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def many_classes() -> tuple[np.ndarray, np.ndarray, Candidates]:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(20, 100)).astype(np.float32)
    codes = rng.integers(0, 100, 20)
    return scores, codes, likely_classes([scores], codes)


def test_candidates_are_the_likeliest_classes_whatever_the_given_label() -> None:
    scores, codes, candidates = many_classes()
    others = likely_classes([scores], (codes + 1) % 100)
    np.testing.assert_array_equal(candidates.classes, others.classes)
    for row, kept in enumerate(candidates.classes):
        assert set(kept[:-1]) == set(np.argsort(-scores[row])[: len(kept) - 1])
        assert kept[-1] == 100


def test_many_classes_are_narrowed_and_widened() -> None:
    scores, codes, candidates = many_classes()
    pool = Pool(np.ones(1), np.zeros(101), np.eye(100))
    p = pool.probabilities([narrow(scores, candidates)], candidates)
    wide = widen(p, candidates, 100)
    np.testing.assert_allclose(wide.sum(axis=1), 1, atol=1e-5)
    kept = candidates.classes[:, :-1]
    expected = np.take_along_axis(softmax(scores), kept, axis=1)
    np.testing.assert_allclose(np.take_along_axis(wide, kept, axis=1), expected, rtol=0.1)
    columns, parts = own_columns(codes, candidates)
    of_given = p[np.arange(20), columns] * parts
    np.testing.assert_allclose(of_given, softmax(scores)[np.arange(20), codes], rtol=0.15)


def test_the_probabilities_of_all_labels_sum_to_one_with_candidates() -> None:
    scores, _, candidates = many_classes()
    noise = uniform_noise(0.6, np.random.default_rng(1).dirichlet(np.ones(100)))
    p = Pool(np.ones(1), np.zeros(101), noise).probabilities([narrow(scores, candidates)], candidates)
    total = np.zeros(20)
    for label in range(100):  # what each label would have been read as, had it been given
        codes = np.full(20, label)
        total += posterior(p, noise, codes, likely_classes([scores], codes))[1]
    np.testing.assert_allclose(total, 1, rtol=0.02)


def test_counts_and_posteriors_with_candidates_add_up() -> None:
    scores, codes, candidates = many_classes()
    noise = uniform_noise(0.6, np.full(100, 0.01))
    p = Pool(np.ones(1), np.zeros(101), noise).probabilities([narrow(scores, candidates)], candidates)
    posteriors, _ = posterior(p, noise, codes, candidates)
    counts = pair_counts(posteriors, noise, codes, candidates)
    np.testing.assert_allclose(counts.sum(axis=0), np.bincount(codes, minlength=100), atol=1e-5)
    own = own_posterior(posteriors, noise, codes, candidates)
    np.testing.assert_allclose(np.bincount(codes, own, 100), counts.diagonal(), atol=1e-5)


def test_em_finds_pairs_with_candidates() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 60, 6000)
    scores = (8 * np.eye(60)[truth] + rng.normal(size=(6000, 60))).astype(np.float32)
    given = np.where(rng.random(6000) < 0.3, (truth + 1) % 60, truth)
    candidates = likely_classes([scores], given)
    p = Pool(np.ones(1), np.zeros(61), np.eye(60)).probabilities([narrow(scores, candidates)], candidates)
    prior = uniform_noise(0.3, np.full(60, 1 / 60)) + 0.01
    found = fit_transition(p, given, prior, candidates, n_steps=30)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert abs(found.diagonal().mean() - 0.7) < 0.03
    assert abs(found[np.arange(60), (np.arange(60) + 1) % 60].mean() - 0.3) < 0.03
