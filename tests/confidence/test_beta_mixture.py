"""The Beta mixture of losses against a plain loop and against the distributions it was drawn from."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from laplaceconfidence.confidence.beta_mixture import (
    BetaLossMixture,
    BetaMixture,
    fit_beta_mixture,
    lower_posterior,
)
from laplaceconfidence.exceptions import InvalidInputError


def two_heaps(seed: int = 0, n_low: int = 200, n_high: int = 100) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    losses = np.concatenate([rng.beta(2, 12, n_low), rng.beta(9, 3, n_high)]) * 5 + 1
    return losses, rng.integers(0, 3, len(losses))


def naive_mixture(x: Any, n_steps: int) -> list[tuple[float, float, float]]:
    components = [(0.5, 1.0, 2.0), (0.5, 2.0, 1.0)]
    for _ in range(n_steps):
        joint = np.array([weight * beta.pdf(x, a, b) for weight, a, b in components])
        responsibility = np.maximum(joint / joint.sum(axis=0), 1e-12)
        components = []
        for r in responsibility:
            mean = np.average(x, weights=r)
            variance = np.average((x - mean) ** 2, weights=r)
            a = mean * (mean * (1 - mean) / variance - 1)
            components.append((r.sum() / responsibility.sum(), a, a * (1 - mean) / mean))
    return components


def test_fit_agrees_with_a_plain_loop() -> None:
    losses, y = two_heaps()
    mixture = BetaLossMixture().fit(losses, y)
    low, high = np.quantile(losses, [0.05, 0.95])
    inner = losses[(losses >= low) & (losses <= high)]
    lowest, span = inner.min(), inner.max() - inner.min()
    components = naive_mixture(np.clip((inner - lowest) / span, 1e-4, 1 - 1e-4), 10)
    for c, (weight, a, b) in enumerate(components):
        assert mixture.weights_[c] == pytest.approx(weight, rel=1e-5)
        assert mixture.alphas_[c] == pytest.approx(a, rel=1e-5)
        assert mixture.betas_[c] == pytest.approx(b, rel=1e-5)
    x = np.clip((losses - lowest) / span, 1e-4, 1 - 1e-4)
    grid = np.linspace(1e-4, 1 - 1e-4, 100_001)
    on_grid = naive_posterior(components, grid)
    peak, trough = grid[on_grid.argmax()], grid[on_grid.argmin()]  # beyond these the posterior is held
    np.testing.assert_allclose(
        mixture.confidence_, naive_posterior(components, np.clip(x, peak, trough)), atol=1e-5
    )


def naive_posterior(components: list[tuple[float, float, float]], x: Any) -> Any:
    low, high = (weight * beta.pdf(x, a, b) for weight, a, b in components)
    return low / (low + high)


def test_parameters_of_a_known_mixture_are_found() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.beta(2, 10, 12_000), rng.beta(8, 2, 8_000)])
    mixture = fit_beta_mixture(x, 100)
    np.testing.assert_allclose(mixture.alphas, [2, 8], rtol=0.1)
    np.testing.assert_allclose(mixture.betas, [10, 2], rtol=0.1)
    np.testing.assert_allclose(mixture.weights, [0.6, 0.4], rtol=0.1)


@settings(max_examples=60, deadline=None)
@given(parameters=st.lists(st.floats(0.1, 50), min_size=4, max_size=4), share=st.floats(0.01, 0.99))
def test_confidence_never_rises_with_the_loss(parameters: list[float], share: float) -> None:
    (a0, b0), (a1, b1) = sorted([parameters[:2], parameters[2:]], key=lambda p: p[0] / (p[0] + p[1]))
    mixture = BetaMixture(np.array([a0, a1]), np.array([b0, b1]), np.array([share, 1 - share]))
    posterior = lower_posterior(mixture, np.linspace(1e-4, 1 - 1e-4, 500))
    assert (np.diff(posterior) <= 1e-9).all()
    assert ((posterior >= 0) & (posterior <= 1)).all()


def test_posterior_is_the_plain_one_where_that_falls_anyway() -> None:
    mixture = BetaMixture(np.array([2.0, 8.0]), np.array([10.0, 2.0]), np.array([0.6, 0.4]))
    x = np.linspace(0.01, 0.99, 99)
    low, high = 0.6 * beta.pdf(x, 2, 10), 0.4 * beta.pdf(x, 8, 2)
    np.testing.assert_allclose(lower_posterior(mixture, x), low / (low + high), atol=1e-10)


def test_the_small_losses_are_the_right_ones() -> None:
    losses, y = two_heaps()
    confidence = BetaLossMixture().fit(losses, y).confidence_
    assert (confidence[:200] > 0.5).mean() > 0.95
    assert (confidence[200:] < 0.5).mean() > 0.9


def test_one_wild_loss_does_not_squeeze_the_others() -> None:
    losses, y = two_heaps()
    calm = BetaLossMixture().fit(losses, y).confidence_
    losses[-1] = 1e6
    wild = BetaLossMixture().fit(losses, y).confidence_
    np.testing.assert_allclose(wild[:-1], calm[:-1], atol=0.1)
    assert wild[-1] < 0.01


def test_losses_of_missing_labels_are_not_looked_at() -> None:
    losses, y = two_heaps()
    missing = np.arange(len(y)) % 5 == 0
    with_nan = np.where(missing, np.nan, losses)
    mixture = BetaLossMixture(missing_label=-1).fit(with_nan, np.where(missing, -1, y))
    assert np.isnan(mixture.confidence_[missing]).all()
    alone = BetaLossMixture().fit(losses[~missing], y[~missing])
    np.testing.assert_allclose(mixture.confidence_[~missing], alone.confidence_)


@settings(max_examples=60, deadline=None)
@given(
    losses=st.lists(
        st.floats(-1e300, 1e300) | st.sampled_from([0.0, 1.0, 5e-324, 1e308, -1e308]), min_size=1
    ),
    max_iter=st.integers(1, 40),
)
def test_any_finite_losses_give_probabilities_that_fall_with_the_loss(
    losses: list[float], max_iter: int
) -> None:
    confidence = BetaLossMixture(max_iter=max_iter).fit(losses, ["a"] * len(losses)).confidence_
    assert ((confidence >= 0) & (confidence <= 1)).all()
    assert (np.diff(confidence[np.argsort(losses)]) <= 1e-9).all()


@pytest.mark.parametrize("losses", [np.full(20, 0.7), [3.0], np.zeros(5)])
def test_losses_that_are_alike_tell_nothing(losses: Any) -> None:
    mixture = BetaLossMixture().fit(losses, [0] * len(losses))
    assert (mixture.confidence_ == 0.5).all()
    assert mixture.label_distributions_ is None


@pytest.mark.parametrize(
    ("settings_", "parameter"),
    [({"max_iter": 0}, "max_iter"), ({"trim": 0.5}, "trim"), ({"trim": -0.1}, "trim")],
)
def test_settings_that_break_a_rule_are_named(settings_: dict[str, Any], parameter: str) -> None:
    losses, y = two_heaps()
    with pytest.raises(InvalidInputError, match=f"'{parameter}'"):
        BetaLossMixture(**settings_).fit(losses, y)
