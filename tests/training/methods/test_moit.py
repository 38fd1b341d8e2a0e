"""MOIT and MOIT+: contrastive losses against loops over pairs, the votes sample by sample."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from method_steps import C, softmax, step_of, whole_batch_step
from test_topofilter import clusters, evidence_of

from laplaceconfidence.exceptions import TrainingWarning
from laplaceconfidence.training.augment.mixing import MixUp
from laplaceconfidence.training.losses import contrastive_losses
from laplaceconfidence.training.methods.interface import Evidence, Plan
from laplaceconfidence.training.methods.moit import (
    CLEAN,
    MEMORY,
    MEMORY_LABELS,
    Moit,
    most_agreeing,
)
from laplaceconfidence.training.methods.moit_plus import MoitPlus
from small_runs import noisy_digits, quick


def unit(values: Any) -> Any:
    return values / np.linalg.norm(values, axis=1, keepdims=True)


def naive_contrast(own: Any, columns: Any, positive: Any, left_out: Any, temperature: float) -> list[float]:
    losses = []
    for i in range(len(own)):
        scores = {
            j: float(own[i] @ columns[j]) / temperature for j in range(len(columns)) if not left_out(i, j)
        }
        total = np.log(sum(np.exp(score) for score in scores.values()))
        logs = [score - total for j, score in scores.items() if positive(i, j)]
        losses.append(-float(np.mean(logs)) if logs else 0.0)
    return losses


def test_contrastive_losses_are_those_of_loops_over_pairs() -> None:
    rng = np.random.default_rng(0)
    own, columns = unit(rng.normal(size=(5, 3))), unit(rng.normal(size=(7, 3)))
    positives, allowed = rng.random((5, 7)) < 0.4, rng.random((5, 7)) < 0.8
    positives[2] = False
    expected = naive_contrast(own, columns, lambda i, j: positives[i, j], lambda i, j: not allowed[i, j], 0.1)
    similarities = torch.from_numpy(own @ columns.T / 0.1).requires_grad_()
    found = contrastive_losses(similarities, torch.from_numpy(positives), torch.from_numpy(allowed))
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-9)
    assert found[2] == 0
    found.sum().backward()
    assert torch.isfinite(similarities.grad).all()  # type: ignore[arg-type]
    nothing = contrastive_losses(torch.ones(2, 1), torch.ones(2, 1).bool(), torch.zeros(2, 1).bool())
    assert nothing.tolist() == [0, 0]


def mixed_views(X: Any, labels: Any, network: Any, seed: int = 3) -> list[tuple[Any, Any, Any, float, Any]]:
    """Logits, projections, partner labels, weight and partners of the two views that a step draws."""
    generator, views = torch.Generator().manual_seed(seed), []
    for _ in range(2):
        weight, partners = MixUp(1.0, own_part_larger=True).draw(len(X), generator)
        other = partners.numpy()
        mixed = weight * X + (1 - weight) * X[other]
        projected = unit(mixed @ network.projection.detach().numpy())
        views.append((mixed @ network.weight.detach().numpy(), projected, labels[other], weight, other))
    return views


def naive_loss(X: Any, labels: Any, targets: Any, network: Any, temperature: float) -> float:
    views = mixed_views(X, labels, network)
    own = np.concatenate([projected for _, projected, _, _, _ in views])
    of_columns, n = np.tile(labels, 2), len(X)
    contrasts, crosses = [], []
    for number, (logits, _, partner_labels, weight, other) in enumerate(views):
        for by, share in ((labels, weight), (partner_labels, 1 - weight)):
            each = naive_contrast(
                own,
                own,
                lambda i, j, by=by: of_columns[j] == by[i % n],  # type: ignore[misc]
                lambda i, j: i == j,
                temperature,
            )
            contrasts.append(share * np.array(each[number * n : (number + 1) * n]))
        mixed = weight * targets + (1 - weight) * targets[other]
        crosses.append(-(mixed * np.log(softmax(logits))).sum(axis=1).mean())
    return float(np.sum(contrasts) / (2 * n) + np.mean(crosses))


@pytest.mark.parametrize("semi_supervised", [False, True])
def test_the_loss_is_that_of_loops_over_pairs(semi_supervised: bool) -> None:
    method = Moit(warmup=3, memory_per_class=0, temperature=0.2)
    step = whole_batch_step(method, method.phases(5 if semi_supervised else 0)[0])
    clean = torch.arange(12) % 4 != 0
    step.state[CLEAN] = clean
    X, labels = step.batch.inputs.numpy(), step.batch.labels.numpy()
    targets = np.eye(C)[labels]
    if semi_supervised:
        predicted = softmax(step.trained(step.batch.inputs))
        targets = np.where(clean.numpy()[:, None], targets, predicted)
    expected = naive_loss(X, labels, targets, step.trained, 0.2)
    assert float(method.loss(step).detach()) == pytest.approx(expected, rel=1e-4)


def test_the_memory_is_contrasted_too_and_holds_the_newest() -> None:
    method = Moit(memory_per_class=9, memory_from=1)
    first = whole_batch_step(method, method.phases(0)[0], round=0)
    without = method.loss(first)
    method.after_step(first)
    memory, labels = first.state[MEMORY], first.state[MEMORY_LABELS]
    assert torch.equal(labels, torch.cat([torch.arange(12) % C, torch.arange(12) % C, torch.full((3,), -1)]))
    views = mixed_views(first.batch.inputs.numpy(), first.batch.labels.numpy(), first.trained)
    np.testing.assert_allclose(memory[:24], np.concatenate([views[0][1], views[1][1]]), rtol=1e-4, atol=1e-6)
    second = whole_batch_step(method, method.phases(0)[0], round=1, state=first.state)
    with_memory = method.loss(second)
    # The same batch: the newest of the memory is the batch itself, so that the contrast is counted twice,
    # and with the three older rows that fit besides.
    assert float(with_memory.detach()) > float(without.detach())
    method.after_step(second)
    assert torch.equal(second.state[MEMORY][:24], memory[:24])
    assert torch.equal(second.state[MEMORY][24:], memory[:3])


def test_gradients_reach_the_projection_and_not_the_memory() -> None:
    method = Moit(memory_per_class=9, memory_from=0)
    step = whole_batch_step(method, method.phases(0)[0])
    method.loss(step).backward()
    assert step.trained.projection.grad.abs().sum() > 0  # type: ignore[attr-defined]
    assert not step.notes[MEMORY].requires_grad


def with_projections(features: Any, labels: Any) -> Evidence:
    evidence = evidence_of(np.zeros_like(features), labels)
    seen = replace(evidence.networks[0], heads={"projection": features})
    return replace(evidence, networks={0: seen})


def naive_shares(features: Any, labels: Any, k: int) -> Any:
    directions = unit(features)
    rows = [i for i in range(len(labels)) if labels[i] != -1]
    nearest = {
        i: sorted((j for j in rows if j != i), key=lambda j: -float(directions[i] @ directions[j]))[:k]
        for i in rows
    }
    counts = {i: [sum(labels[j] == c for j in nearest[i]) for c in range(3)] for i in rows}
    corrected = {i: int(np.argmax(counts[i])) for i in rows}
    shares = np.zeros((len(labels), 3))
    for i in rows:
        shares[i] = [sum(corrected[j] == c for j in nearest[i]) / k for c in range(3)]
    return shares


def test_neighbors_vote_with_corrected_labels() -> None:
    features, labels = clusters(0)
    labels[::9] = -1
    evidence = with_projections(features, labels)
    found = Moit(n_neighbors=7).agreement(evidence)
    expected = naive_shares(features, labels, 7)
    np.testing.assert_allclose(found, expected)
    confidence = Moit(n_neighbors=7).final_confidence(evidence, {})
    assert np.isnan(confidence[::9]).all()
    assert confidence[1] == expected[1, labels[1]]


def test_every_class_keeps_the_median_number_of_agreeing_samples() -> None:
    labels = np.repeat([0, 1, 2], [5, 4, 3])
    shares = np.full((12, 3), 0.1)
    shares[np.arange(12), labels] = [0.9, 0.8, 0.7, 0.6, 0.2, 0.9, 0.8, 0.3, 0.2, 0.05, 0.02, 0.06]
    clean = most_agreeing(shares, labels)  # 5, 4 and 0 agree (0.2 and 0.3 are the largest of their rows)
    assert clean.tolist() == [True] * 4 + [False] + [True] * 4 + [True] * 3
    shares[5:9, 0] = 0.95  # now 5, 0 and 0 agree: the median is 0, and one stays in every class
    assert np.flatnonzero(most_agreeing(shares, labels)).tolist() == [0, 5, 11]


def test_a_single_labeled_sample_agrees_with_itself() -> None:
    evidence = with_projections(np.ones((2, 3)), np.array([-1, 1]))
    assert Moit().agreement(evidence).tolist() == [[0, 0, 0], [0, 1, 0]]


def test_fine_tuning_has_a_new_classifier_and_clean_samples_only() -> None:
    method = MoitPlus(warmup=1, moit_rounds=3, n_neighbors=7)
    assert [method.phases(round)[0].name for round in range(5)] == [
        "all labels",
        "semi-supervised",
        "semi-supervised",
        "fine-tuning",
        "fine-tuning",
    ]
    start, later = method.phases(3)[0], method.phases(4)[0]
    assert (start.fresh, start.fresh_parts, start.learning_rate) == ((0,), ("classifier",), 0.001)
    assert not later.fresh
    evidence = with_projections(*clusters(1))
    state = method.initial_state(evidence.problem)
    for phase in (start, later):
        plan = method.plan(phase, evidence, state)
        assert torch.equal(plan.streams["samples"], torch.nonzero(state[CLEAN]).flatten())
        assert 0 < plan.measures["clean_share"] < 1


@pytest.mark.parametrize("bootstraps", [False, True])
def test_fine_tuning_mixes_and_later_bootstraps(bootstraps: bool) -> None:
    method = MoitPlus(moit_rounds=2, bootstrap_from=3)
    step = whole_batch_step(method, method.phases(2)[0], round=5 if bootstraps else 4)
    X, labels = step.batch.inputs.numpy(), step.batch.labels.numpy()
    targets = np.eye(C)[labels]
    if bootstraps:
        targets = 0.8 * targets + 0.2 * np.eye(C)[softmax(step.trained(step.batch.inputs)).argmax(axis=1)]
    logits, _, _, weight, other = mixed_views(X, labels, step.trained)[0]
    mixed = weight * targets + (1 - weight) * targets[other]
    expected = -(mixed * np.log(softmax(logits))).sum(axis=1).mean()
    assert float(method.loss(step).detach()) == pytest.approx(expected, rel=1e-5)


def test_a_batch_of_one_has_its_other_view_only() -> None:
    method = Moit(memory_per_class=0)
    step = step_of(method, method.phases(0)[0], Plan({"samples": torch.arange(1)}), {"samples": [4]})
    assert torch.isfinite(method.loss(step))
    assert float(step.measures["contrast"]) == pytest.approx(0, abs=1e-6)


def test_too_few_rounds_for_fine_tuning_are_noted() -> None:
    problem = with_projections(*clusters(1)).problem  # of ten rounds
    with pytest.warns(TrainingWarning, match="All 10 rounds are rounds of MOIT"):
        MoitPlus(moit_rounds=10).initial_state(problem)


def test_the_classifier_really_starts_anew() -> None:
    X, y, _ = noisy_digits(120)
    losses = [
        phase["loss"]
        for record in quick("moit_plus", {"moit_rounds": 4}, rounds=5).fit(X, y).history_
        for phase in record["phases"]
    ]
    assert losses[4] > 2.0  # about log 10 on samples that are clean and were learned
