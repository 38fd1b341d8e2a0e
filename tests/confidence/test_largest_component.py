"""The largest components of the classes against a plain search through the graph."""

from typing import Any

import numpy as np
import pytest

from laplaceconfidence.confidence.largest_component import LargestComponent
from laplaceconfidence.exceptions import InvalidInputError


def noisy_clouds(n: int = 120, d: int = 6, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    X = rng.normal(size=(n, d)) + 2.5 * np.eye(d)[truth]
    return X, np.where(rng.random(n) < 0.3, rng.integers(0, 3, n), truth)


def nearest(X: Any, k: int) -> list[list[int]]:
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    similarities = unit @ unit.T
    np.fill_diagonal(similarities, -np.inf)
    return [[int(j) for j in np.argsort(-row)[:k] if row[j] > 0] for row in similarities]


def naive_components(X: Any, y: Any, k: int) -> set[int]:
    sees = nearest(X, k)
    kept: set[int] = set()
    for label in set(y.tolist()) - {-1}:
        waiting = {i for i in range(len(y)) if y[i] == label}
        components = []
        while waiting:
            frontier = [waiting.pop()]
            component = set(frontier)
            while frontier:
                i = frontier.pop()
                joined = {j for j in waiting if j in sees[i] or i in sees[j]}
                waiting -= joined
                component |= joined
                frontier += joined
            components.append(component)
        largest = max(len(component) for component in components)
        kept |= {i for component in components if len(component) == largest for i in component}
    return kept


def naive_filter(X: Any, y: Any, kept: set[int], k: int, zeta: float) -> set[int]:
    rows = sorted(kept)
    k = min(k, len(rows) - 1)
    stay = set()
    for i, neighbors in zip(rows, nearest(X[rows], k), strict=True):
        counts = np.bincount([y[rows[j]] for j in neighbors], minlength=3)
        if counts[y[i]] == counts.max() and counts[y[i]] >= zeta * k:
            stay.add(i)
    return stay


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("zeta", "n_outlier"), [(None, 32), (0.5, 10), (0.9, 32), (0.0, 5)])
def test_agrees_with_a_plain_search(seed: int, zeta: float | None, n_outlier: int) -> None:
    X, y = noisy_clouds(seed=seed)
    y[::11] = -1
    expected = naive_components(X, y, 4)
    if zeta is not None:
        expected = naive_filter(X, y, expected, n_outlier, zeta)
    estimator = LargestComponent(zeta=zeta, n_outlier_neighbors=n_outlier, missing_label=-1).fit(X, y)
    assert set(np.flatnonzero(estimator.confidence_ == 1).tolist()) == expected
    np.testing.assert_array_equal(np.isnan(estimator.confidence_), y == -1)
    assert set(estimator.confidence_[y >= 0]) <= {0.0, 1.0}


def test_distributions_are_shares_of_the_kept_neighbors() -> None:
    X, y = noisy_clouds()
    estimator = LargestComponent(n_outlier_neighbors=8).fit(X, y)
    for i, neighbors in enumerate(nearest(X, 8)):
        asked = [j for j in neighbors if estimator.confidence_[j] == 1] or neighbors
        counts = np.bincount(y[asked], minlength=3)
        np.testing.assert_allclose(estimator.label_distributions_[i], counts / counts.sum())


def test_a_stray_group_of_a_class_is_doubted() -> None:
    rng = np.random.default_rng(0)
    core, other, stray = (
        center + 0.05 * rng.normal(size=(size, 3))
        for center, size in (([1, 0, 0], 20), ([0, 1, 0], 20), ([0, 0.7, 0.7], 6))
    )
    confidence = (
        LargestComponent()
        .fit(np.vstack([core, other, stray]), ["a"] * 20 + ["b"] * 20 + ["a"] * 6)
        .confidence_
    )
    assert confidence.tolist() == [1.0] * 40 + [0.0] * 6


def test_components_of_equal_size_are_all_kept() -> None:
    X = np.repeat(np.eye(2), 6, axis=0)
    assert (LargestComponent(zeta=None).fit(X, [0] * 12).confidence_ == 1).all()


def test_zero_vectors_stand_alone() -> None:
    X = np.vstack([np.ones((10, 3)), np.zeros((2, 3))])
    estimator = LargestComponent().fit(X, [0] * 12)
    assert estimator.confidence_.tolist() == [1.0] * 10 + [0.0] * 2
    np.testing.assert_allclose(estimator.label_distributions_, 1)


@pytest.mark.parametrize(
    ("settings", "parameter"),
    [
        ({"n_neighbors": 0}, "n_neighbors"),
        ({"n_outlier_neighbors": 0}, "n_outlier_neighbors"),
        ({"zeta": 1.5}, "zeta"),
        ({"zeta": "half"}, "zeta"),
    ],
)
def test_settings_that_break_a_rule_are_named(settings: dict[str, Any], parameter: str) -> None:
    X, y = noisy_clouds()
    with pytest.raises(InvalidInputError, match=f"'{parameter}'"):
        LargestComponent(**settings).fit(X, y)
