"""MLNT's meta-gradient against finite differences, its synthetic labels, teacher, mentor and iterations."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from method_steps import C, whole_batch_step
from torch import Tensor, nn
from torch.nn import functional

from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.training.callbacks import Callback, TrainingContext
from laplaceconfidence.training.distributed import Team
from laplaceconfidence.training.methods.interface import Evidence, NetworkEvidence
from laplaceconfidence.training.methods.mlnt import KEPT, MENTOR, MLNT, STUDENT, TEACHER, synthetic_labels
from laplaceconfidence.training.trained_network import HeadedNetwork, TrainedNetwork
from small_runs import noisy_digits, plain_mlp, quick, weights


def network(seed: int) -> TrainedNetwork:
    torch.manual_seed(seed)
    layers = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, C))
    return TrainedNetwork(HeadedNetwork(layers, None), torch.device("cpu"), Team(), compiled=False)


def step_of(method: MLNT, round: int) -> Any:
    step = whole_batch_step(method, method.phases(round)[0], round=round, progress=round + 0.5)
    step.networks = tuple(network(seed) for seed in range(3))
    step.networks[STUDENT].begin_phase(True)
    return step


def sets_of_labels(step: Any, method: MLNT) -> list[Tensor]:
    """The synthetic labels that the step draws."""
    generator = torch.Generator().manual_seed(3)
    features = step.networks[MENTOR].outputs(step.batch.inputs).features.detach()
    distances = torch.cdist(features, features).fill_diagonal_(torch.inf)
    neighbors = distances.argsort(dim=1)[:, : min(method.n_neighbors, 11)]
    return [
        synthetic_labels(step.batch.labels, neighbors, method.replaced_share, generator)
        for _ in range(method.synthetic_sets)
    ]


def meta_loss_by_hand(step: Any, method: MLNT, change: Callable[[Tensor, int], Tensor]) -> Tensor:
    """The meta-loss with changed weights, from its definition."""
    X = step.batch.inputs
    module = step.networks[STUDENT].module.backbone
    parameters = {
        name: change(parameter.detach(), number).requires_grad_()
        for number, (name, parameter) in enumerate(module.named_parameters())
    }
    targets = step.networks[TEACHER](X).softmax(dim=1).detach()
    divergences = []
    for labels in sets_of_labels(step, method):
        loss = functional.cross_entropy(torch.func.functional_call(module, parameters, X), labels)
        slopes = torch.autograd.grad(loss, list(parameters.values()))
        moved = {
            name: parameter - method.inner_rate * slope
            for (name, parameter), slope in zip(parameters.items(), slopes, strict=True)
        }
        p = torch.func.functional_call(module, moved, X).softmax(dim=1)
        divergences.append((targets * (targets / p).log()).sum(dim=1).mean())
    return torch.stack(divergences).mean().detach()


METHOD = MLNT(synthetic_sets=3, n_neighbors=3, inner_rate=0.8, ramp=4).for_rounds(8)


def test_the_meta_gradient_is_that_of_finite_differences() -> None:
    step = step_of(METHOD, 5)
    loss = METHOD.meta_loss(step)
    loss.backward()
    assert loss.item() == pytest.approx(meta_loss_by_hand(step, METHOD, lambda p, _: p).item(), rel=1e-5)
    parameters = list(step.networks[STUDENT].module.backbone.parameters())
    generator = torch.Generator().manual_seed(0)
    for _ in range(3):
        direction = [torch.randn(p.shape, generator=generator) for p in parameters]
        slope = sum(float((p.grad * d).sum()) for p, d in zip(parameters, direction, strict=True))
        ends = [
            meta_loss_by_hand(
                step, METHOD, lambda p, number, size=size, d=direction: p + size * d[number]
            ).item()
            for size in (2e-3, -2e-3)
        ]
        assert (ends[0] - ends[1]) / 4e-3 == pytest.approx(slope, rel=0.02, abs=1e-4)


def test_the_first_order_gradient_is_that_at_the_virtual_weights() -> None:
    method = MLNT(synthetic_sets=1, inner_rate=0.8, second_order=False).for_rounds(8)
    step = step_of(method, 5)
    method.meta_loss(step).backward()
    module, X = step.networks[STUDENT].module.backbone, step.batch.inputs
    found = [p.grad.clone() for p in module.parameters()]
    (labels,) = sets_of_labels(step, method)
    loss = functional.cross_entropy(module(X), labels)
    slopes = torch.autograd.grad(loss, list(module.parameters()))
    moved = [
        (p - 0.8 * s).detach().requires_grad_() for p, s in zip(module.parameters(), slopes, strict=True)
    ]
    named = dict(zip(dict(module.named_parameters()), moved, strict=True))
    log_p = torch.func.functional_call(module, named, X).log_softmax(dim=1)
    targets = step.networks[TEACHER](X).softmax(dim=1).detach()
    expected = torch.autograd.grad(functional.kl_div(log_p, targets, reduction="batchmean"), moved)
    torch.testing.assert_close(found, list(expected))


def test_without_a_virtual_step_the_meta_loss_is_the_divergence_from_the_teacher() -> None:
    method = MLNT(inner_rate=0.0, synthetic_sets=2).for_rounds(8)
    step = step_of(method, 5)
    X = step.batch.inputs
    p, q = (step.networks[one](X).softmax(dim=1) for one in (STUDENT, TEACHER))
    torch.testing.assert_close(
        method.meta_loss(step).detach(), (q * (q / p).log()).sum(dim=1).mean().detach()
    )


def test_the_meta_step_comes_first_and_its_weight_rises() -> None:
    step = step_of(METHOD, 5)
    losses = METHOD.losses(step)
    first, second = next(losses), next(losses)
    assert next(losses, None) is None
    weight = 0.4 * math.exp(-5 * (1 - 1.5 / 4) ** 2)  # the iteration began with round 4
    step = step_of(METHOD, 5)
    torch.testing.assert_close(first.detach(), weight * METHOD.meta_loss(step).detach())
    torch.testing.assert_close(second, METHOD.loss(step))
    assert [len(list(METHOD.losses(step_of(METHOD, number)))) for number in (0, 3, 4)] == [1, 1, 2]
    late = step_of(MLNT(ramp=2).for_rounds(8), 7)
    assert MLNT(ramp=2).for_rounds(8).meta_weight_at(late) == 0.4


def test_synthetic_labels_are_those_of_neighbors_for_the_stated_share() -> None:
    labels = torch.arange(10) * 10
    neighbors = torch.stack([(torch.arange(10) + 1) % 10, (torch.arange(10) + 2) % 10], dim=1)
    generator = torch.Generator().manual_seed(0)
    for share in (0.0, 0.5, 1.0):
        drawn = synthetic_labels(labels, neighbors, share, generator)
        changed = torch.nonzero(drawn != labels).flatten()
        assert len(changed) == int(10 * share)
        assert all(drawn[row] in labels[neighbors[row]] for row in changed)
    assert torch.equal(synthetic_labels(labels, neighbors[:, :0], 1.0, generator), labels)


def test_the_teacher_is_the_moving_average_of_the_student() -> None:
    step = step_of(METHOD, 5)
    step.is_made = True
    before = [p.detach().clone() for p in step.networks[TEACHER].module.parameters()]
    METHOD.after_step(step)
    for mean, old, new in zip(
        step.networks[TEACHER].module.parameters(),
        before,
        step.networks[STUDENT].module.parameters(),
        strict=True,
    ):
        torch.testing.assert_close(mean, 0.99 * old + 0.01 * new)
    step.is_made = False
    after = [p.detach().clone() for p in step.networks[TEACHER].module.parameters()]
    METHOD.after_step(step)
    assert all(map(torch.equal, after, step.networks[TEACHER].module.parameters()))


def test_later_iterations_leave_out_what_the_mentor_finds_improbable() -> None:
    method = MLNT(iterations=2, least_probability=0.3).for_rounds(6)
    step = whole_batch_step(method, method.phases(0)[0])
    labels = np.array([0, 1, 2, -1, 0, 1])
    p = np.array([[0.2, 0.8, 0], [0.2, 0.8, 0], [0.3, 0.4, 0.3], [1, 0, 0], [0.1, 0.1, 0.8], [0, 1, 0]])
    state: dict[str, Tensor] = {}
    seen = Evidence({TEACHER: NetworkEvidence(p, p)}, labels, step.problem, 4, seed=0, inputs=lambda: p)
    assert method.plan(method.phases(4)[0], seen, state).streams["samples"].tolist() == [1, 2, 5]
    assert state[KEPT].tolist() == [1, 2, 5]


class KeepWeights(Callback):
    def __init__(self) -> None:
        self.rounds: list[list[list[Tensor]]] = []

    def on_round_end(self, context: TrainingContext) -> None:
        self.rounds.append([[t.clone() for t in net.state_dict().values()] for net in context.networks])


def same(first: list[Tensor], second: list[Tensor]) -> bool:
    return all(map(torch.equal, first, second))


def test_the_mentor_of_an_iteration_is_the_best_teacher_of_the_one_before_it() -> None:
    X, y, _ = noisy_digits(200, rate=0.2)
    kept = KeepWeights()
    method = MLNT(synthetic_sets=2, iterations=2, early_decay=0.9, ramp=1)
    run = quick(method=method, network=plain_mlp, rounds=6, callbacks=[kept]).fit(X, y)
    mentors = [networks[MENTOR] for networks in kept.rounds]
    assert same(mentors[2], mentors[3])
    assert any(same(mentors[2], one) for one in mentors[:2])  # the best round of its own training
    assert same(mentors[4], mentors[5])
    assert any(same(mentors[4], networks[TEACHER]) for networks in kept.rounds[2:4])
    assert run.summary_["chosen_round"] > 4
    assert [record["phases"][0]["name"] for record in run.history_] == (
        ["training of the mentor"] * 2 + ["meta-learning"] * 4
    )


def test_only_the_teacher_predicts_in_the_end() -> None:
    X, y, _ = noisy_digits(60)
    run = quick(method=MLNT(synthetic_sets=1), network=plain_mlp, validation_fraction=0).fit(X, y)
    teacher = run.networks_[TEACHER].eval()
    with torch.no_grad():
        inputs = run._model.normalized(torch.from_numpy(X).unsqueeze(1))
        expected = teacher(inputs).softmax(dim=1).numpy()
    np.testing.assert_allclose(run.predict_proba(X), expected, atol=1e-6)
    assert all(torch.isfinite(tensor).all() for tensor in weights(run))


def test_bad_settings_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="'rounds' parameter must be at least 3"):
        MLNT(iterations=2).for_rounds(2)
    with pytest.raises(InvalidInputError, match="'replaced_share' parameter"):
        MLNT(replaced_share=2)
