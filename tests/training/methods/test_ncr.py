"""The neighbor term of NCR against loops over pairs."""

from typing import Any

import numpy as np
import pytest
import torch
from method_steps import C, softmax, step_of, whole_batch_step

from laplaceconfidence.training.methods.interface import Plan
from laplaceconfidence.training.methods.ncr import NCR


def naive_loss(inputs: Any, logits: Any, labels: Any, method: NCR) -> float:
    T, n = method.temperature, len(inputs)
    p, tempered = softmax(logits), softmax(logits / T)
    unit = inputs / np.linalg.norm(inputs, axis=1, keepdims=True)
    divergences = []
    for i in range(n):
        others = sorted((j for j in range(n) if j != i), key=lambda j: -(unit[i] @ unit[j]))
        nearest = others[: method.n_neighbors]
        weights = np.array([max(unit[i] @ unit[j], 0) ** method.similarity_power for j in nearest])
        if weights.sum() == 0:
            divergences.append(0.0)
            continue
        q = sum(w * tempered[j] for w, j in zip(weights / weights.sum(), nearest, strict=True))
        divergences.append((q * np.log(q / tempered[i])).sum())
    given = -np.log(p[np.arange(n), labels]).mean()
    a = method.neighbor_weight
    return float((1 - a) * given + a * T**2 * np.mean(divergences))


@pytest.mark.parametrize("settings", [{}, {"n_neighbors": 3, "similarity_power": 2.0}, {"n_neighbors": 99}])
def test_the_loss_is_that_of_loops_over_pairs(settings: dict[str, Any]) -> None:
    method = NCR(warmup=0, neighbor_weight=0.7, **settings)
    step = whole_batch_step(method, method.phases(0)[0])
    inputs, labels = step.batch.inputs.numpy(), step.batch.labels.numpy()
    logits = step.trained(step.batch.inputs).detach().numpy()
    expected = naive_loss(inputs, logits, labels, method)
    assert float(method.loss(step).detach()) == pytest.approx(expected, rel=1e-4)


def test_duplicates_are_each_others_neighbors_and_opposites_are_nobodys() -> None:
    method = NCR(warmup=0, neighbor_weight=1, n_neighbors=1)
    step = whole_batch_step(method, method.phases(0)[0])
    step.batch.inputs[:6] = torch.tensor([1.0, 0, 0, 0])
    step.batch.inputs[6:] = torch.tensor([-1.0, 0, 0, 0])
    assert float(method.loss(step).detach()) == pytest.approx(0, abs=1e-6)  # neighbors predict the same
    step.batch.inputs[1:] = torch.tensor([-1.0, 0, 0, 0])  # the first has no similar neighbor
    assert float(method.loss(step).detach()) == pytest.approx(0, abs=1e-6)
    step.networks[0].weight.grad = None  # type: ignore[attr-defined]
    method.loss(step).backward()
    assert torch.isfinite(step.networks[0].weight.grad).all()  # type: ignore[attr-defined]


def test_a_batch_of_one_has_no_neighbor_term() -> None:
    method = NCR(warmup=0, neighbor_weight=0.5)
    step = step_of(method, method.phases(0)[0], Plan({"samples": torch.arange(1)}), {"samples": [4]})
    logits = step.trained(step.batch.inputs)
    expected = 0.5 * torch.nn.functional.cross_entropy(logits, step.batch.labels)
    torch.testing.assert_close(method.loss(step), expected)


def test_gradients_flow_through_the_neighbors_unless_stopped() -> None:
    slopes = []
    for stop in (False, True):
        method = NCR(warmup=0, neighbor_weight=1, stop_gradient=stop)
        step = whole_batch_step(method, method.phases(0)[0])
        slopes.append(torch.autograd.grad(method.loss(step), step.trained.weight)[0])  # type: ignore[attr-defined]
    assert slopes[0].shape == (4, C)
    assert not torch.allclose(*slopes)
