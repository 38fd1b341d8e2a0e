"""Regressions against scikit-learn, fit by fit."""

import dataclasses

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from laplaceconfidence.confidence.noise_aware import probes
from laplaceconfidence.confidence.noise_aware.probes import fit_regression


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


def test_a_regression_continues_from_another_one() -> None:
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(200, 5)).astype(np.float32), rng.integers(0, 3, 200)
    visible = np.ones((200, 2), np.float32)
    done = fit_regression(Z, y, visible, 3, l2=0.1, tol=1e-4, max_iter=100)
    again = fit_regression(Z, y, visible, 3, l2=0.1, tol=1e-4, max_iter=0, start=done.weights)
    np.testing.assert_array_equal(again.weights, done.weights)
    np.testing.assert_allclose(done.averaged(np.array([[0, 1]])).weights[:, 0], done.weights.mean(axis=1))


def test_with_many_samples_and_classes_regressions_use_the_first_axes() -> None:
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(300, 20)).astype(np.float32), rng.integers(0, 3, 300)
    visible = np.ones((300, 1), np.float32)
    few = dataclasses.replace(probes.PROBE, entries_of_one_step=300 * 3 * 4, fewest_axes=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probes, "PROBE", few)
        regression, discriminant = probes.fit_probes(Z, y, visible, 3, l2=1.0, n_jobs=1)
    assert regression.weights.shape == (5, 1, 3)
    assert discriminant.weights.shape == (21, 1, 3)
    assert regression.logits(Z).shape == (300, 1, 3)
    np.testing.assert_allclose(regression.on_axes(9).logits(Z), regression.logits(Z), atol=1e-5)
    continued, _ = probes.fit_probes(Z, y, visible, 3, l2=1.0, start=regression, n_jobs=1)
    assert continued.weights.shape == (21, 1, 3)
