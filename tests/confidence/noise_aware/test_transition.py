"""Posteriors and counts under a noise matrix, and many classes reduced to candidates."""

import numpy as np

from laplaceconfidence.confidence.noise_aware.noise_model import Pool
from laplaceconfidence.confidence.noise_aware.transition import (
    is_diagonal_dominant,
    likely_classes,
    narrow,
    pair_counts,
    posterior,
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
    counts = pair_counts(posteriors, codes, 3, None)
    np.testing.assert_allclose(counts.sum(axis=0), np.bincount(codes, minlength=3))


def test_renamed_classes_are_recognized() -> None:
    counts = np.full(3, 100.0)
    assert is_diagonal_dominant(uniform_noise(0.8, np.full(3, 1 / 3)), counts)
    assert not is_diagonal_dominant(np.eye(3)[[1, 2, 0]], counts)
    assert is_diagonal_dominant(np.eye(3)[[1, 2, 0]], np.ones(3))


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def test_many_classes_are_narrowed_without_losing_the_given_one() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(20, 100)).astype(np.float32)
    codes = rng.integers(0, 100, 20)
    candidates = likely_classes([scores], codes)
    assert (candidates == codes[:, None]).any(axis=1).all()
    assert (candidates == scores.argmax(axis=1)[:, None]).any(axis=1).all()
    p = Pool(np.ones(1), np.zeros(100), np.eye(100)).probabilities([narrow(scores, candidates)], candidates)
    wide = widen(p, candidates, 100)
    np.testing.assert_allclose(wide.sum(axis=1), 1, atol=1e-5)
    rows = np.arange(20)
    np.testing.assert_allclose(wide[rows, codes], softmax(scores)[rows, codes], rtol=0.3)
