"""The losses of the two methods against their papers' formulas written out."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from laplaceconfidence.training.augment.mixing import MixUp
from laplaceconfidence.training.augment.protocol import Unchanged
from laplaceconfidence.training.distributed import Team
from laplaceconfidence.training.methods.co_teaching import CoTeaching
from laplaceconfidence.training.methods.dividemix import DivideMix
from laplaceconfidence.training.methods.interface import Method, Phase, Plan, Problem
from laplaceconfidence.training.sample_views import SampleViews
from laplaceconfidence.training.step import Batch, Step

C = 3


class LinearNetwork:
    """Stands in for a network: one matrix."""

    def __init__(self, seed: int) -> None:
        self.weight = torch.randn(4, C, generator=torch.Generator().manual_seed(seed), requires_grad=True)

    def __call__(self, inputs: Tensor) -> Tensor:
        return inputs @ self.weight


def batch_of(index: Tensor, X: Tensor, labels: Tensor) -> Batch:
    views = SampleViews(Unchanged(), Unchanged(), torch.zeros(1, 4), torch.ones(1, 4))
    generator = torch.Generator().manual_seed(0)
    return Batch(index, labels[index], X[index], views, generator, Team(), whole=True, weight=1.0)


def step_of(method: Method, phase: Phase, plan: Plan, batches: dict[str, Any], **more: Any) -> Step:
    labels = torch.arange(12) % C
    problem = Problem(labels, C, rounds=20, batch_size=6, seed=0, sample_shape=(3,))
    networks: Any = (LinearNetwork(1), LinearNetwork(2))
    generator = torch.Generator().manual_seed(3)
    X = torch.randn(12, 4, generator=torch.Generator().manual_seed(4))
    parts = {name: batch_of(torch.tensor(index), X, labels) for name, index in batches.items()}
    usual = {"round": 5, "progress": 5.5}
    return Step(
        phase=phase,
        plan=plan,
        state={},
        problem=problem,
        networks=networks,
        batches=parts,
        generator=generator,
        team=Team(),
        **(usual | more),
    )


@pytest.mark.parametrize("number", [0, 2, 5, 30])
def test_co_teaching_learns_from_what_the_other_finds_easy(number: int) -> None:
    method = CoTeaching(forget_rate=0.6, ramp=5)
    plan = Plan({"samples": torch.arange(12)})
    step = step_of(method, method.phases(0)[0], plan, {"samples": list(range(12))}, round=number)
    kept = int((1 - 0.6 * min(number / 5, 1)) * 12)
    inputs, labels = step.batch.inputs, step.batch.labels
    each = []
    for network in step.networks:
        p = network(inputs).detach().softmax(dim=1).numpy()
        each.append(-np.log(p[np.arange(12), labels.numpy()]))
    expected = each[0][np.argsort(each[1])[:kept]].mean() + each[1][np.argsort(each[0])[:kept]].mean()
    assert float(method.loss(step).detach()) == pytest.approx(expected, rel=1e-5)


def test_dividemix_is_mixmatch_on_refined_and_guessed_labels() -> None:
    method = DivideMix(warmup=2, unlabelled_weight=10, ramp=8, sharpen=2, mix_alpha=4)
    confidence = torch.linspace(0, 1, 12)
    plan = Plan({}, {"confidence": confidence})
    batches = {"labelled": [8, 9, 10, 11], "unlabelled": [0, 1, 2]}
    step = step_of(method, Phase("mixmatch", trains=(1,)), plan, batches)
    loss = float(method.loss(step).detach())

    own, peer = step.networks[1], step.networks[0]
    x, u = step.batches["labelled"], step.batches["unlabelled"]

    def softmax(values: Tensor) -> Any:
        exponentials = np.exp(values.detach().numpy())
        return exponentials / exponentials.sum(axis=1, keepdims=True)

    def squared(p: Any) -> Any:
        return p**2 / (p**2).sum(axis=1, keepdims=True)

    w = confidence[x.index].numpy()[:, None]
    target_x = squared(w * np.eye(C)[x.labels.numpy()] + (1 - w) * softmax(own(x.inputs)))
    target_u = squared((softmax(own(u.inputs)) + softmax(peer(u.inputs))) / 2)
    inputs = torch.cat([x.inputs, x.inputs, u.inputs, u.inputs]).numpy()
    targets = np.concatenate([target_x, target_x, target_u, target_u])
    part, partner = MixUp(4, own_part_larger=True).draw(len(inputs), torch.Generator().manual_seed(3))
    assert part >= 0.5
    inputs = part * inputs + (1 - part) * inputs[partner]
    targets = part * targets + (1 - part) * targets[partner]
    p = softmax(own(torch.from_numpy(inputs).float()))
    loss_x = -(targets[:8] * np.log(p[:8])).sum(axis=1).mean()
    loss_u = ((targets[8:] - p[8:]) ** 2).mean()
    prior = (np.log(1 / C / p.mean(axis=0)) / C).sum()
    ramp = (5.5 - 2) / 8
    assert loss == pytest.approx(loss_x + 10 * ramp * loss_u + prior, rel=1e-4)


def test_dividemix_averages_the_last_five_scaled_losses() -> None:
    from laplaceconfidence.training.methods.confidences import averaged_losses

    rng, state, scaled = np.random.default_rng(0), {}, []
    for _ in range(7):
        losses = rng.random(10) * 5
        scaled.append((losses - losses.min()) / (losses.max() - losses.min()))
        mean = averaged_losses(state, 0, losses)
        np.testing.assert_allclose(mean, np.mean(scaled[-5:], axis=0), rtol=1e-5)
    assert state["losses_0"].shape == (5, 10)
