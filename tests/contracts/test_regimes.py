"""In the noise that its paper claims, each method ends above plain cross-entropy (``make test-slow``).

Digits of 8 x 8 pixels, half of them to train on, and a multilayer perceptron that memorizes wrong labels.
"Last accuracy" is the mean over the last five rounds, on clean test labels that nothing is chosen by.
Everything but the method is the same for it and for cross-entropy. Rounds of warm-up are scaled from the 100
to 300 rounds of the papers; weights and rates are the published ones of the regime, and noise rates are not
given.
"""

from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from laplaceconfidence.training.augment.weak import WeakAugment
from laplaceconfidence.training.classifier import RobustClassifier
from laplaceconfidence.training.methods.registry import METHODS, build_method

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

ROUNDS = 60

# Method: noise of the regime, its rate, and settings.
REGIMES: dict[str, list[tuple[str, float, dict[str, Any]]]] = {
    "laplace": [("symmetric", 0.5, {"warmup": 5, "n_neighbors": 10})],
    "co_teaching": [("symmetric", 0.5, {"ramp": 3})],
    "dividemix": [("symmetric", 0.5, {"warmup": 5, "unlabelled_weight": 25.0})],
    "bootstrap": [("pair", 0.4, {"variant": "hard"})],
    "mixup": [("symmetric", 0.5, {"alpha": 32.0})],
    "co_teaching_plus": [("symmetric", 0.5, {"ramp": 3, "initial": 6})],
    "pencil": [("symmetric", 0.5, {"warmup": 10, "correction": 30, "final": 20, "label_rate": 400.0})],
    "m_correction": [
        ("symmetric", 0.5, {"warmup": 20}),
        ("symmetric", 0.8, {"warmup": 20, "variant": "MD-DYR-SH", "dynamic_mixup": 2}),
    ],
    "curriculum": [("symmetric", 0.5, {"warmup": 3})],
    "topofilter": [("symmetric", 0.6, {"warmup": 10})],
    "d2l": [("symmetric", 0.4, {"warmup": 5})],
    "mentornet": [("symmetric", 0.4, {"percentile": 0.75})],
    "laplacenet": [("hidden", 0.97, {"warmup": 10, "n_neighbors": 10, "labeled_share": 0.5})],
    "moit": [("symmetric", 0.4, {"warmup": 20, "n_neighbors": 50})],
    "moit_plus": [
        ("symmetric", 0.4, {"warmup": 20, "n_neighbors": 50, "moit_rounds": 45, "bootstrap_from": 5})
    ],
    "ngc": [("symmetric", 0.5, {"n_neighbors": 10})],
    "augdesc": [("symmetric", 0.5, {"warmup": 5, "unlabelled_weight": 25.0})],
    "ncr": [("symmetric", 0.4, {"warmup": 3})],
    "forward_correction": [("pair", 0.4, {"estimation_rounds": 5})],
    "itlm": [("symmetric", 0.5, {})],
    "selfie": [("symmetric", 0.5, {"restarts": 1, "history": 5, "warmup": 4})],
    "incv": [("symmetric", 0.5, {})],
    "mlnt": [("symmetric", 0.5, {"training_rounds": 5, "ramp": 5, "synthetic_sets": 4})],
}
# At the rate of all others, this network memorizes every label within three rounds: too early to notice.
LEARNING_RATES = {"d2l": 0.002, "moit": 0.002, "moit_plus": 0.002}
CELLS = [
    pytest.param(name, *regime, id=f"{name}-{number}")
    for name, regimes in REGIMES.items()
    for number, regime in enumerate(regimes)
]


@cache
def noisy_halves(noise: str, rate: float) -> tuple[Any, ...]:
    """Training images with noisy labels, test images with clean ones."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(X))
    images = (X[order].reshape(-1, 8, 8) * 15).astype(np.uint8)
    labels = y[order]
    half = len(X) // 2
    flipped = rng.random(half) < rate
    others = {
        "symmetric": rng.integers(0, 10, half),
        "pair": (labels[:half] + 1) % 10,
        "hidden": np.full(half, -1),  # no label instead of a wrong one
    }[noise]
    given = np.where(flipped, others, labels[:half])
    return images[:half], given, images[half:], labels[half:]


def last_accuracy(
    name: str, noise: str, rate: float, settings: dict[str, Any], learning_rate: float = 0.02, **fit: Any
) -> float:
    X, given, test_images, test_labels = noisy_halves(noise, rate)
    classifier = RobustClassifier(
        network="mlp",
        method=build_method(name, settings),
        rounds=ROUNDS,
        batch_size=64,
        learning_rate=learning_rate,
        learning_rate_drops=(0.7,),
        weak="none",
        strong=WeakAugment(padding=1, flip=False),
        validation_fraction=0,
        missing_label=-1,
        device="cpu",
        n_jobs=1,
        random_state=0,
    ).fit(X, given, test=(test_images, test_labels), **fit)
    return float(np.mean([record["test_accuracy"] for record in classifier.history_[-5:]]))


@cache
def of_cross_entropy(noise: str, rate: float, learning_rate: float = 0.02) -> float:
    return last_accuracy("cross_entropy", noise, rate, {}, learning_rate)


def test_every_method_has_a_regime() -> None:
    assert set(REGIMES) == set(METHODS) - {"cross_entropy"}


@pytest.mark.parametrize(("name", "noise", "rate", "settings"), CELLS)
def test_it_beats_cross_entropy_at_the_end(
    name: str, noise: str, rate: float, settings: dict[str, Any]
) -> None:
    learning_rate = LEARNING_RATES.get(name, 0.02)
    reached = last_accuracy(name, noise, rate, settings, learning_rate)
    plain = of_cross_entropy(noise, rate, learning_rate)
    print(f"{name} {settings} {noise} {rate:.0%}: {reached:.1%} against {plain:.1%}")  # noqa: T201
    assert reached > plain


def test_soft_bootstrapping_ends_where_cross_entropy_does() -> None:
    """No better, as in later papers' tables of CIFAR-10: that is what was measured."""
    reached = last_accuracy("bootstrap", "pair", 0.4, {"variant": "soft"})
    assert reached == pytest.approx(of_cross_entropy("pair", 0.4), abs=0.02)


def test_a_mentor_that_learned_from_verified_labels_beats_the_predefined_curriculum() -> None:
    X, y = load_digits(return_X_y=True)
    true = y[np.random.default_rng(0).permutation(len(X))]
    audited = {row: true[row] for row in range(0, 898, 10)}  # a tenth, as in the paper
    settings = {"variant": "learned", "percentile": 0.6}
    reached = last_accuracy("mentornet", "symmetric", 0.4, settings, audited=audited)
    predefined = last_accuracy("mentornet", "symmetric", 0.4, {"percentile": 0.75})
    print(f"learned mentor: {reached:.1%}, predefined curriculum: {predefined:.1%}")  # noqa: T201
    assert reached > predefined > of_cross_entropy("symmetric", 0.4)
