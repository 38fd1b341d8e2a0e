"""Discriminants against the densities that they estimate."""

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import multivariate_t, norm

from laplaceconfidence.confidence.noise_aware.discriminants import fit_discriminants, tails_are_heavy
from laplaceconfidence.data.labels import MISSING


def samples_with_heavy_tails(freedom: float, n_axes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Samples of three classes, their classes and the true log densities, up to the shares."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 4000)
    means = 3 * rng.normal(size=(3, n_axes))
    widths = np.sqrt(freedom / rng.chisquare(freedom, len(y)))
    Z = means[y] + rng.normal(size=(len(y), n_axes)) * widths[:, None]
    densities = [multivariate_t.logpdf(Z, mean, np.eye(n_axes), df=freedom) for mean in means]
    return Z.astype(np.float32), y, np.stack(densities, axis=1)


def test_discriminants_are_gaussians_with_one_variance_per_axis_where_classes_are_large() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 3000)
    Z = (rng.normal(size=(3, 4))[y] * 4 + rng.normal(size=(3000, 4))).astype(np.float32)
    found = fit_discriminants(Z, y, np.ones((3000, 1), np.float32), 3, n_jobs=1)
    means = np.stack([Z[y == c].mean(axis=0) for c in range(3)])
    deviations = np.sqrt(np.square(Z - means[y]).mean(axis=0))
    by_class = norm.logpdf(Z[:, None], means, deviations).sum(axis=2) + np.log(np.bincount(y) / 3000)
    np.testing.assert_allclose(softmax(found.logits(Z)[:, 0], axis=1), softmax(by_class, axis=1), atol=0.02)


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


def test_discriminants_do_not_depend_on_the_scale_of_an_axis() -> None:
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(120, 4)).astype(np.float32), rng.integers(0, 3, 120)
    scale = np.float32([1, 10, 0.1, 3])
    visible = np.ones((120, 1), np.float32)
    logits = fit_discriminants(Z, y, visible, 3).logits(Z)
    np.testing.assert_allclose(
        fit_discriminants(Z * scale, y, visible, 3).logits(Z * scale), logits, atol=1e-3
    )


def test_discriminants_of_nothing_are_finite() -> None:
    Z = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    alone = fit_discriminants(Z, np.arange(6), np.ones((6, 1), np.float32), 8, n_jobs=1)
    unvisible = fit_discriminants(Z, np.arange(6), np.zeros((6, 1), np.float32), 8, n_jobs=1)
    assert np.isfinite(alone.logits(Z)).all()
    assert np.isfinite(unvisible.logits(Z)).all()


@pytest.mark.parametrize("n_axes", [5, 40])
@pytest.mark.parametrize("freedom", [5.0, 12.0])
def test_discriminants_are_t_distributions_where_tails_are_heavy(freedom: float, n_axes: int) -> None:
    Z, y, densities = samples_with_heavy_tails(freedom, n_axes)
    found = fit_discriminants(Z, y, np.ones((len(y), 1), np.float32), 3, heavy_tails=True)
    assert found.freedom[0] == pytest.approx(freedom, rel=0.3)
    np.testing.assert_allclose(softmax(found.logits(Z)[:, 0], axis=1), softmax(densities, axis=1), atol=0.2)
    errors = np.abs(softmax(found.logits(Z)[:, 0], axis=1) - softmax(densities, axis=1))
    assert errors.mean() < 0.002


def test_samples_far_from_all_classes_are_less_certain_where_tails_are_heavy() -> None:
    Z, y, _ = samples_with_heavy_tails(4.0, 20)
    far = 10 * np.random.default_rng(1).normal(size=(200, 20)).astype(np.float32)
    visible = np.ones((len(y), 1), np.float32)
    light, heavy = (
        softmax(fit_discriminants(Z, y, visible, 3, heavy_tails=tails).logits(far)[:, 0], axis=1).max(axis=1)
        for tails in (False, True)
    )
    assert (heavy <= light).mean() > 0.95
    assert (heavy < 0.9).mean() > 0.2
    assert (light < 0.9).mean() < 0.1


def test_the_degrees_of_freedom_do_not_depend_on_held_out_labels() -> None:
    Z, y, _ = samples_with_heavy_tails(5.0, 8)
    visible = (np.random.default_rng(1).random((len(y), 2)) < 0.5).astype(np.float32)
    renamed = np.where(visible[:, 0] > 0, y, (y + 1) % 3)
    found = fit_discriminants(Z, y, visible, 3, heavy_tails=True).freedom
    changed = fit_discriminants(Z, renamed, visible, 3, heavy_tails=True).freedom
    assert found[0] == changed[0]
    assert found[1] != changed[1]


@pytest.mark.parametrize("noise", [0.0, 0.3, 0.7])
def test_heavy_tails_are_chosen_where_classes_have_them_and_overlap(noise: float) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 20, 4000)
    Z = 0.7 * rng.normal(size=(20, 30))[y] + rng.normal(size=(4000, 30)) * np.sqrt(
        4 / rng.chisquare(4, (4000, 1))
    )
    given = np.where(rng.random(4000) < noise, rng.integers(0, 20, 4000), y)
    assert tails_are_heavy(Z.astype(np.float32), given, 20)


@pytest.mark.parametrize("n", [8, 30, 300, 3000])
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_gaussian_classes_have_no_heavy_tails(n: int, noise: float) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, n)
    Z = (rng.normal(size=(3, 10))[y] + rng.normal(size=(n, 10))).astype(np.float32)
    given = np.where(rng.random(n) < noise, rng.integers(0, 3, n), y)
    assert not tails_are_heavy(Z, given, 3)


def test_samples_without_a_label_do_not_matter_for_tails() -> None:
    Z, y, _ = samples_with_heavy_tails(4.0, 20)
    assert not tails_are_heavy(Z, np.full(len(y), MISSING), 3)
    y[::2] = MISSING
    assert isinstance(tails_are_heavy(Z, y, 3), bool)
