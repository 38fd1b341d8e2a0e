"""Linear probes against scikit-learn, fit by fit."""

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression

from laplaceconfidence.confidence.noise_aware.probes import fit_discriminants, fit_regression


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def test_the_probe_agrees_with_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(200, 5)).astype(np.float32)
    y = (Z @ rng.normal(size=(5, 3)) + rng.normal(size=(200, 3))).argmax(axis=1)
    probe = fit_regression(Z, y, np.ones((200, 1)), 3, l2=0.1, tol=1e-5, max_iter=200, n_jobs=1)
    # scikit-learn minimizes C * summed loss + |W|^2 / 2; ours is the mean loss + l2 |W|^2 / 2.
    peer = LogisticRegression(C=1 / (0.1 * 200), tol=1e-8, max_iter=1000).fit(Z, y)
    np.testing.assert_allclose(softmax(probe.logits(Z)[:, 0]), peer.predict_proba(Z), atol=2e-3)


def test_fits_of_the_probe_do_not_mix_and_hard_targets_are_soft_ones() -> None:
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(120, 4)).astype(np.float32)
    y = rng.integers(0, 3, 120)
    visible = (rng.random((120, 3)) < 0.7).astype(np.float32)
    visible[:, 0] = 1  # losses are means over the samples that any fit uses
    together = fit_regression(Z, y, visible, 3, l2=0.1, tol=1e-5, max_iter=200, n_jobs=1).weights
    soft = np.repeat(np.eye(3, dtype=np.float32)[y][:, None], 3, axis=1)
    softly = fit_regression(Z, soft, visible, 3, l2=0.1, tol=1e-5, max_iter=200, n_jobs=2).weights
    np.testing.assert_allclose(together, softly, atol=1e-3)
    other = visible.copy()
    other[:, 1] = 1 - other[:, 1]
    changed = fit_regression(Z, y, other, 3, l2=0.1, tol=1e-5, max_iter=200, n_jobs=1).weights
    np.testing.assert_allclose(together[:, [0, 2]], changed[:, [0, 2]], atol=1e-3)


def test_discriminants_are_those_of_scikit_learn_where_classes_are_large() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 3000)
    Z = (rng.normal(size=(3, 4))[y] * 1.5 + rng.normal(size=(3000, 4))).astype(np.float32)
    probe = fit_discriminants(Z, y, np.ones((3000, 1), np.float32), 3, n_jobs=1)
    peer = LinearDiscriminantAnalysis().fit(Z, y)
    np.testing.assert_allclose(softmax(probe.logits(Z)[:, 0]), peer.predict_proba(Z), atol=0.02)


def test_discriminants_use_visible_labels_only_and_hard_targets_are_soft_ones() -> None:
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(120, 4)).astype(np.float32), rng.integers(0, 3, 120)
    visible = (rng.random((120, 2)) < 0.7).astype(np.float32)
    soft = np.repeat(np.eye(3, dtype=np.float32)[y][:, None], 2, axis=1)
    weights = fit_discriminants(Z, y, visible, 3, n_jobs=1).weights
    np.testing.assert_allclose(weights, fit_discriminants(Z, soft, visible, 3).weights, atol=1e-4)
    renamed = np.where(visible[:, 0] > 0, y, (y + 1) % 3)
    changed = fit_discriminants(Z, renamed, visible, 3, n_jobs=1).weights
    np.testing.assert_allclose(weights[:, 0], changed[:, 0], atol=1e-5)


def test_discriminants_of_nothing_are_finite() -> None:
    Z = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    alone = fit_discriminants(Z, np.arange(6), np.ones((6, 1), np.float32), 8, n_jobs=1)
    unvisible = fit_discriminants(Z, np.arange(6), np.zeros((6, 1), np.float32), 8, n_jobs=1)
    assert np.isfinite(alone.weights).all()
    assert np.isfinite(unvisible.weights).all()
