"""Bootstrapping and MixUp against their formulas."""

import numpy as np
import pytest
import torch
from method_steps import C, softmax, whole_batch_step

from laplaceconfidence.training.augment.mixing import MixUp
from laplaceconfidence.training.methods.bootstrap import Bootstrap
from laplaceconfidence.training.methods.mixup import MixUpTraining


@pytest.mark.parametrize(("variant", "beta"), [("soft", None), ("hard", None), ("soft", 0.5), ("hard", 1.0)])
def test_bootstrapping_mixes_label_and_prediction(variant: str, beta: float | None) -> None:
    method = Bootstrap(variant=variant, beta=beta)
    step = whole_batch_step(method, method.phases(0)[0])
    p = softmax(step.trained(step.batch.inputs))
    weight = {"soft": 0.95, "hard": 0.8}[variant] if beta is None else beta
    own = p if variant == "soft" else np.eye(C)[p.argmax(axis=1)]
    targets = weight * np.eye(C)[step.batch.labels.numpy()] + (1 - weight) * own
    expected = -(targets * np.log(p)).sum(axis=1).mean()
    assert float(method.loss(step).detach()) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("stop_gradient", [False, True])
def test_soft_bootstrapping_minimizes_entropy_unless_the_gradient_is_stopped(stop_gradient: bool) -> None:
    method = Bootstrap(beta=0.6, stop_gradient=stop_gradient)
    step = whole_batch_step(method, method.phases(0)[0])
    weight = step.trained.weight  # type: ignore[attr-defined]
    (slope,) = torch.autograd.grad(method.loss(step), weight)
    logits = step.trained(step.batch.inputs)
    p, given = logits.softmax(dim=1), torch.eye(C)[step.batch.labels]
    if stop_gradient:  # of a cross-entropy with fixed targets: p - target
        expected_slope = p - 0.6 * given - 0.4 * p
    else:  # the entropy adds -p (log p + H)
        entropy = -(p * p.log()).sum(dim=1, keepdim=True)
        expected_slope = 0.6 * (p - given) - 0.4 * p * (p.log() + entropy)
    torch.testing.assert_close(slope, step.batch.inputs.T @ expected_slope / 12)


def test_mixup_is_the_weighted_sum_of_two_cross_entropies() -> None:
    method = MixUpTraining(alpha=8)
    step = whole_batch_step(method, method.phases(0)[0])
    weight, partner = MixUp(8).draw(12, torch.Generator().manual_seed(3))
    inputs, labels = step.batch.inputs, step.batch.labels
    log_p = step.trained(weight * inputs + (1 - weight) * inputs[partner]).log_softmax(dim=1)
    rows = torch.arange(12)
    expected = -(weight * log_p[rows, labels] + (1 - weight) * log_p[rows, labels[partner]]).mean()
    torch.testing.assert_close(method.loss(step), expected)
