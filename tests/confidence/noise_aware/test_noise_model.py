"""The likelihood of the given labels: gradients, and the noise that it finds."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from laplaceconfidence.confidence.noise_aware import noise_model
from laplaceconfidence.confidence.noise_aware.noise_model import (
    Pool,
    PooledRows,
    fit_alternating_pool,
    fit_full_pool,
    fit_symmetric_pool,
)
from laplaceconfidence.confidence.noise_aware.transition import (
    fit_transition,
    likely_classes,
    narrow,
    uniform_noise,
)


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def test_a_line_search_that_goes_too_far_finds_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 30)
    rows = PooledRows(rng.normal(size=(2, 30, 3)), codes, 3, None)
    values = []

    def far_away(loss: object, start: np.ndarray, n_steps: int, tolerance: float = 0) -> np.ndarray:
        far = start.copy()
        far[:2] = 1000.0  # logarithms of the weights
        value, gradient = loss(far)  # type: ignore[operator]
        values.extend([value, *gradient])
        return start

    monkeypatch.setattr(noise_model, "_minimized", far_away)
    with np.errstate(over="raise", invalid="raise"):
        pool, _ = fit_symmetric_pool(rows, np.full(3, 1 / 3))
        fit_full_pool(rows, pool, np.ones((3, 3)))
        noise_model.fit_fixed_noise_pool(rows, pool)
    assert np.isfinite(values).all()


@pytest.mark.parametrize("with_candidates", [False, True])
def test_gradients_of_the_pools_are_right(with_candidates: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    n, n_classes, m = 30, 60 if with_candidates else 4, 2
    codes = rng.integers(0, n_classes, n)
    candidates = None
    evidence = rng.normal(size=(m, n, n_classes))
    if with_candidates:
        candidates = likely_classes([part.astype(np.float32) for part in evidence], codes)
        evidence = np.stack([narrow(part, candidates) for part in evidence])
    rows = PooledRows(evidence, codes, n_classes, candidates)
    checked = []

    def compare(loss: object, start: np.ndarray, n_steps: int, tolerance: float = 0) -> np.ndarray:
        point = start + 0.1 * np.random.default_rng(1).normal(size=len(start))
        value, gradient = loss(point)  # type: ignore[operator]
        numeric = approx_fprime(point, lambda theta: loss(theta)[0], 1e-6)  # type: ignore[operator]
        np.testing.assert_allclose(gradient, numeric, atol=1e-5)
        checked.append(value)
        return start

    monkeypatch.setattr(noise_model, "_minimized", compare)
    base = np.full(n_classes, 1 / n_classes)
    pool, _ = fit_symmetric_pool(rows, base)
    noise_model.fit_fixed_noise_pool(rows, pool)
    if not with_candidates:
        fit_full_pool(rows, pool, uniform_noise(0.3, base) + 0.5)
    assert len(checked) == (2 if with_candidates else 3)


def test_the_noise_is_found_by_the_likelihood() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 4, 4000)
    p = softmax(4 * np.eye(4)[truth] + rng.normal(size=(4000, 4)))
    truth = (p.cumsum(axis=1) < rng.random((4000, 1))).sum(axis=1)
    noise = np.array([[0.7, 0.3, 0, 0], [0, 0.9, 0.1, 0], [0, 0, 1, 0], [0.2, 0, 0, 0.8]])
    given_labels = (noise[truth].cumsum(axis=1) < rng.random((4000, 1))).sum(axis=1)
    rows = PooledRows(np.log(p)[None], given_labels, 4, None)
    start = Pool(np.ones(1), np.zeros(4), uniform_noise(0.2, np.full(4, 0.25)))
    found = fit_full_pool(rows, start, np.full((4, 4), 0.5))
    np.testing.assert_allclose(found.transition, noise, atol=0.05)
    np.testing.assert_allclose(found.weights, 1, atol=0.15)
    by_em = fit_transition(p, given_labels, np.full((4, 4), 0.5) + np.eye(4), None, n_steps=50)
    np.testing.assert_allclose(by_em, noise, atol=0.05)


def test_few_labels_per_class_do_not_make_the_evidence_much_too_certain() -> None:
    rng = np.random.default_rng(0)
    n, n_classes = 2000, 100
    scores = 3 * rng.normal(size=(n, n_classes)).astype(np.float32)
    truth = (softmax(scores).cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    given_labels = np.where(rng.random(n) < 0.3, (truth + 1) % n_classes, truth)
    candidates = likely_classes([scores], given_labels)
    evidence = narrow(scores, candidates)[None].astype(np.float64)
    rows = PooledRows(evidence, given_labels, n_classes, candidates)
    base = np.full(n_classes, 1 / n_classes)
    start = Pool(np.ones(1), np.zeros(n_classes + 1), uniform_noise(0.2, base))
    found = fit_alternating_pool(rows, start, 15 * uniform_noise(0.5, base))
    # 1 is right. Under a matrix that has learned the labels it is judged by, the weight is 1.74.
    assert 0.9 < found.weights[0] < 1.35
