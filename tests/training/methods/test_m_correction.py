"""M-correction: the Beta mixture of the losses, dynamic bootstrapping, dynamic MixUp."""

from typing import Any

import numpy as np
import pytest
import torch
from method_steps import C, softmax, whole_batch_step

from laplaceconfidence.confidence.beta_mixture import BetaLossMixture
from laplaceconfidence.training.augment.mixing import MixUp
from laplaceconfidence.training.methods.interface import Evidence, NetworkEvidence, Plan, Problem
from laplaceconfidence.training.methods.m_correction import MCorrection

CONFIDENCE = torch.linspace(0, 1, 12)


def expected_loss(step: Any, mix_weight: Any, temperature: float | None, prior: bool) -> float:
    """The paper's loss written for pairs: each side has its own target, weighted by its part in the mix."""
    network, inputs, labels = step.trained, step.batch.inputs, step.batch.labels.numpy()
    wrong = 1 - np.clip(CONFIDENCE.numpy(), 1e-4, 1 - 1e-4)
    drawn, partner = MixUp(32).draw(12, torch.Generator().manual_seed(3))
    logits = network(inputs).detach().numpy()
    guessed = np.eye(C)[logits.argmax(axis=1)] if temperature is None else softmax(logits / temperature)
    part = mix_weight(drawn, 1 - wrong, (1 - wrong)[partner])[:, None]
    mixed = part * inputs.numpy() + (1 - part) * inputs.numpy()[partner]
    p = softmax(network(torch.from_numpy(mixed).float()))
    total = 0.0
    for i, j in enumerate(partner.tolist()):
        for side, weight in ((i, part[i, 0]), (j, 1 - part[i, 0])):
            by_label = -np.log(p[i, labels[side]])
            by_guess = -(guessed[side] * np.log(p[i])).sum()
            total += weight * ((1 - wrong[side]) * by_label + wrong[side] * by_guess) / 12
    return total + (float((np.log(1 / C / p.mean(axis=0)) / C).sum()) if prior else 0)


def static(drawn: float, own: Any, other: Any) -> Any:
    return np.full(len(own), drawn)


def dynamic(drawn: float, own: Any, other: Any) -> Any:
    return own / (own + other)


def test_hard_bootstrapping_weights_each_side_by_its_posterior() -> None:
    method = MCorrection(warmup=2)
    step = whole_batch_step(method, method.phases(2)[0], Plan({}, {"confidence": CONFIDENCE}))
    expected = expected_loss(step, static, None, prior=True)
    assert float(method.loss(step).detach()) == pytest.approx(expected, rel=1e-4)


def test_dynamic_mixup_weights_samples_by_their_posteriors() -> None:
    method = MCorrection("MD-DYR-SH", warmup=2, dynamic_mixup=3)
    step = whole_batch_step(method, method.phases(9)[0], Plan({}, {"confidence": CONFIDENCE}), round=9)
    temperature = 1 - 0.999 * (9 - 5) / (19 - 5)  # from round 5 to the last of 20
    expected = expected_loss(step, dynamic, temperature, prior=True)
    assert float(method.loss(step).detach()) == pytest.approx(expected, rel=1e-4)


def test_the_rounds_have_the_published_order() -> None:
    names = [MCorrection("MD-DYR-SH").phases(number)[0].name for number in (0, 104, 105, 109, 110)]
    assert names == ["mixup", "mixup", "dynamic mixup", "dynamic mixup", "bootstrapping"]
    assert MCorrection().phases(105)[0].name == "bootstrapping"
    soft = MCorrection("MD-DYR-SH")
    assert soft.temperature(110, 300) == 1
    assert soft.temperature(299, 300) == pytest.approx(0.001)


def test_the_posterior_is_that_of_the_beta_mixture_of_the_losses() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, C, 200)
    right = rng.random(200) < 0.6
    at_label = np.where(right, rng.uniform(0.7, 0.99, 200), rng.uniform(0.01, 0.2, 200))
    probabilities = np.repeat(((1 - at_label) / (C - 1))[:, None], C, axis=1)
    probabilities[np.arange(200), labels] = at_label
    seen = NetworkEvidence(np.zeros((200, 2)), probabilities)
    problem = Problem(torch.from_numpy(labels), C, rounds=9, batch_size=6, seed=0, sample_shape=(3,))
    evidence = Evidence({0: seen}, labels, problem, 3, 0, lambda: np.zeros((200, 3)))
    method = MCorrection(warmup=2)
    confidence = method.plan(method.phases(3)[0], evidence, {}).tensors["confidence"].numpy()
    expected = BetaLossMixture().fit(-np.log(at_label), labels).confidence_
    np.testing.assert_allclose(confidence, expected, rtol=1e-4, atol=1e-6)
    assert ((confidence > 0.5) == right).all()
