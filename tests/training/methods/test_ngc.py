"""NGC: propagation against a dense inverse, components by search, and losses by loops over pairs."""

from typing import Any

import numpy as np
import pytest
import torch
from method_steps import C, softmax, step_of, whole_batch_step
from test_moit import naive_contrast, unit, with_projections
from test_topofilter import clusters

from laplaceconfidence.features.scale import unit_length
from laplaceconfidence.graph.neighbors import find_neighbors
from laplaceconfidence.training.augment.mixing import MixUp
from laplaceconfidence.training.methods.interface import Plan
from laplaceconfidence.training.methods.ngc import (
    KEPT,
    LABELS,
    LOG_PREDICTIONS,
    N_AVERAGED,
    NGC,
    mutual_components,
    propagated,
)


def naive_propagation(features: Any, labels: Any, k: int) -> Any:
    cosines, n = unit(features) @ unit(features).T, len(features)
    W = np.zeros((n, n))
    for i in range(n):
        others = sorted((j for j in range(n) if j != i), key=lambda j: -cosines[i, j])
        for j in others[:k]:
            W[i, j] = max(cosines[i, j], 0) ** 3
    W = W + W.T
    root = np.sqrt(np.where(W.sum(axis=1) > 0, W.sum(axis=1), 1))
    Y = labels / labels.sum(axis=0)
    Z = np.maximum(np.linalg.inv(np.eye(n) - 0.5 * W / np.outer(root, root)) @ Y, 0)
    return Z / Z.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("seed", range(3))
def test_propagation_is_that_of_a_dense_inverse(seed: int) -> None:
    features, _ = clusters(seed)
    labels = np.random.default_rng(seed).dirichlet(np.ones(3), size=60)
    neighbors = find_neighbors(unit_length(features), 6)
    expected = naive_propagation(features, labels, 6)
    np.testing.assert_allclose(propagated(neighbors, labels), expected, atol=1e-4)


def test_a_class_without_a_label_and_a_sample_without_neighbors_are_harmless() -> None:
    features = np.concatenate([np.eye(3)[np.arange(9) % 2], np.zeros((1, 3))]).astype(np.float32)
    labels = np.eye(3)[[0, 1] * 4 + [0, 0]]
    labels[9] = 0
    found = propagated(find_neighbors(unit_length(features), 3), labels)
    assert np.isfinite(found).all()
    assert found[9] == pytest.approx([1 / 3] * 3)
    assert np.array_equal(found[:9].argmax(axis=1), np.arange(9) % 2)


@pytest.mark.parametrize("seed", range(3))
def test_components_are_those_of_mutual_neighbors(seed: int) -> None:
    features, labels = clusters(seed)
    candidates = np.random.default_rng(seed).random(60) < 0.8
    neighbors = find_neighbors(unit_length(features), 4)
    near = [set(row) for row in neighbors.indices]
    expected = set()
    for label in range(3):
        left = {i for i in range(60) if candidates[i] and labels[i] == label}
        found: list[set[int]] = []
        while left:
            group, waiting = set(), [next(iter(left))]
            while waiting:
                i = waiting.pop()
                group.add(i)
                waiting += [j for j in left - group if j in near[i] and i in near[j]]
            left -= group
            found.append(group)
        largest = max(map(len, found), default=0)
        for group in found:
            expected |= group if len(group) == largest else set()
    assert set(np.flatnonzero(mutual_components(neighbors, labels, candidates))) == expected
    nothing = mutual_components(neighbors, labels, np.zeros(60, bool))
    assert not nothing.any()


def test_labels_stay_until_predictions_and_neighbors_disagree() -> None:
    rng = np.random.default_rng(0)
    true = np.arange(60) % 3
    features = (np.eye(3)[true] * 6 + rng.normal(size=(60, 3)) * 0.3).astype(np.float32)
    labels = true.copy()
    labels[:3] = [1, 2, 0]  # wrong
    labels[3] = -1
    method = NGC(warmup=0, n_neighbors=8)
    evidence = with_projections(features, labels)
    evidence.networks[0].probabilities[:] = np.eye(3)[true] * 0.94 + 0.02
    state = method.initial_state(evidence.problem)
    method.plan(method.phases(0)[0], evidence, state)
    assert state[LABELS][:4].tolist() == [1, 2, 0, 0]  # a label of its own outweighs those of neighbors
    assert not state[KEPT][:3].any()  # but it is alone in that part of the graph
    assert state[KEPT][4:].float().mean() > 0.9
    plan = method.plan(method.phases(1)[0], evidence, state)
    assert torch.equal(state[LABELS], torch.from_numpy(true))
    assert float(state[KEPT].float().mean()) == pytest.approx(plan.measures["kept_share"])
    confidence = plan.tensors["confidence"]
    assert confidence[:3].max() < 1 / 3 < confidence[4:].min()
    assert confidence[3] == 0
    assert len(plan.streams["samples"]) == 60
    final = method.final_confidence(evidence, state)
    assert np.isnan(final[3])
    assert final[:3].max() < 1 / 3 < final[4:].min()


def test_thresholds_decide_what_stays_and_what_is_selected() -> None:
    features, labels = clusters(2)
    evidence = with_projections(features, labels)
    evidence.networks[0].probabilities[:] = np.eye(3)[(labels + 1) % 3] * 0.7 + 0.1

    def shares(**settings: Any) -> tuple[float, float]:
        method = NGC(warmup=0, n_neighbors=8, **settings)
        state = method.initial_state(evidence.problem)
        for round in range(2):
            method.plan(method.phases(round)[0], evidence, state)
        stays = (state[LABELS].numpy() == labels).mean()
        return float(stays), float(state[KEPT].float().mean())

    low, middle, high = (shares(low_threshold=threshold)[0] for threshold in (0.0, 0.3, 0.9))
    assert low == 1 > middle >= high
    assert shares(low_threshold=0.9, high_threshold=0.0)[1] > shares(low_threshold=0.9)[1]


def test_predictions_are_averaged_over_rounds_and_used_from_the_second_on() -> None:
    features, labels = clusters(1)
    method = NGC(warmup=0, n_neighbors=8)
    evidence = with_projections(features, labels)
    state = method.initial_state(evidence.problem)
    rng, logits = np.random.default_rng(0), []
    for _ in range(3):
        logits.append(rng.normal(size=(60, 3)))
        evidence.networks[0].probabilities[:] = softmax(logits[-1])
        kept, before = state[KEPT].numpy().copy(), state[LABELS].numpy().copy()
        plan = method.plan(method.phases(0)[0], evidence, state)
    average = sum(0.4 * 0.6 ** (2 - i) * one for i, one in enumerate(logits)) / (1 - 0.6**3)
    known = np.where(kept[:, None], np.eye(3)[before], softmax(average))
    expected = naive_propagation(features, known, 8)[np.arange(60), labels]
    np.testing.assert_allclose(plan.tensors["confidence"], expected, atol=1e-3)
    assert int(state[N_AVERAGED]) == 3
    assert state[LOG_PREDICTIONS].shape == (60, 3)


def naive_loss(step: Any, method: NGC, labels: Any, kept: Any, contrasts: bool) -> float:
    X, n = step.batch.inputs.numpy(), len(labels)
    rows = np.flatnonzero(np.tile(kept, 2))
    both, all_labels = np.concatenate([X, X]), np.tile(labels, 2)
    weight, order = MixUp(method.mix_alpha).draw(len(rows), torch.Generator().manual_seed(3))
    partners = rows[order.numpy()]
    inputs = weight * both[rows] + (1 - weight) * both[partners]
    targets = weight * np.eye(C)[all_labels[rows]] + (1 - weight) * np.eye(C)[all_labels[partners]]
    p = softmax(inputs @ step.trained.weight.detach().numpy())
    loss = float(-(targets * np.log(p)).sum(axis=1).mean())
    if not contrasts:
        return loss
    projected = unit(X @ step.trained.projection.detach().numpy())
    columns, flags = np.concatenate([projected, projected]), np.tile(kept, 2)
    instance = naive_contrast(projected, columns, lambda i, j: j == i + n, lambda i, j: i == j, 0.3)
    supervised = naive_contrast(
        projected,
        columns,
        lambda i, j: j == i + n or (kept[i] and flags[j] and labels[i] == all_labels[j]),
        lambda i, j: i == j,
        1.0,
    )
    return loss + 2 * float(np.mean(instance)) + 3 * float(np.mean(supervised))


@pytest.mark.parametrize("contrasts", [False, True])
def test_the_loss_is_that_of_loops_over_pairs(contrasts: bool) -> None:
    method = NGC(warmup=1, instance_weight=2.0, supervised_weight=3.0)
    step = whole_batch_step(method, method.phases(1 if contrasts else 0)[0])
    labels, kept = step.batch.labels.numpy(), np.ones(12, bool)
    if contrasts:
        labels, kept = (labels + 1) % C, np.arange(12) % 4 != 1
        step.state |= {LABELS: torch.from_numpy(labels), KEPT: torch.from_numpy(kept)}
    expected = naive_loss(step, method, labels, kept, contrasts)
    assert float(method.loss(step).detach()) == pytest.approx(expected, rel=1e-4)


def test_a_batch_without_selected_samples_is_contrasted_only() -> None:
    method = NGC(warmup=0)
    step = step_of(method, method.phases(0)[0], Plan({"samples": torch.arange(4)}), {"samples": [0, 1, 2, 3]})
    loss = method.loss(step)
    expected = step.measures["instance_contrast"] + step.measures["supervised_contrast"]
    torch.testing.assert_close(loss.detach(), expected)
    loss.backward()
    assert torch.isfinite(step.trained.projection.grad).all()  # type: ignore[attr-defined]
