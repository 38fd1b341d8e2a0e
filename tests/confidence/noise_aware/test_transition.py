"""Posteriors and counts under a noise matrix."""

import numpy as np

from laplaceconfidence.confidence.noise_aware.transition import (
    is_diagonal_dominant,
    pair_counts,
    posterior,
    uniform_noise,
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
