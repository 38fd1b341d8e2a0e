"""LaplaceNet: pseudo-labels against a dense inverse and the published alignment, the loss by hand."""

from typing import Any

import numpy as np
import pytest
import torch
from method_steps import C, softmax, step_of
from test_topofilter import clusters, evidence_of

from laplaceconfidence.training.augment.mixing import MixUp
from laplaceconfidence.training.methods.interface import Phase, Plan
from laplaceconfidence.training.methods.laplacenet import (
    LABELED,
    PSEUDO_LABELS,
    UNLABELED,
    LaplaceNet,
    aligned_labels,
)
from small_runs import noisy_digits, quick


def naive_propagation(features: Any, labels: Any, method: LaplaceNet) -> Any:
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    cosines, n = unit @ unit.T, len(labels)
    W = np.zeros((n, n))
    for i in range(n):
        others = sorted((j for j in range(n) if j != i), key=lambda j: -cosines[i, j])
        for j in others[: method.n_neighbors]:
            W[i, j] = max(cosines[i, j], 0)
    W = np.maximum(W, W.T)
    root = np.sqrt(np.where(W.sum(axis=1) > 0, W.sum(axis=1), 1))
    Y = np.eye(4)[labels][:, :3]
    return np.maximum(np.linalg.inv(np.eye(n) - method.alpha * W / np.outer(root, root)) @ Y, 0)


def naive_alignment(solution: Any, given: Any) -> Any:
    """As published: on probabilities, which are normalized every time."""
    p = solution / solution.sum(axis=1, keepdims=True)
    wanted = np.array([(given == c).mean() for c in range(3)])
    for _ in range(100):
        found = np.array([(p.argmax(axis=1) == c).mean() for c in range(3)])
        p = p * np.clip(wanted / (found + 1e-7), 0.99, 1.01)
        p = p / p.sum(axis=1, keepdims=True)
    return p.argmax(axis=1)


@pytest.mark.parametrize("seed", range(3))
def test_hidden_labels_come_from_the_graph(seed: int) -> None:
    features, labels = clusters(seed)
    hidden = np.random.default_rng(seed).random(60) < 0.7
    labels = np.where(hidden, -1, labels)
    method = LaplaceNet(warmup=0, n_neighbors=6, alpha=0.5)  # so that 30 iterations are as good as an inverse
    plan = method.plan(method.phases(0)[0], evidence_of(features, labels), {})
    expected = naive_propagation(features, labels, method)
    found = plan.tensors[PSEUDO_LABELS].numpy()
    assert np.array_equal(found[~hidden], labels[~hidden])
    agreement = (found[hidden] == naive_alignment(expected[hidden], labels[~hidden])).mean()
    assert agreement > 0.95  # ties of the alignment may fall either way
    assert torch.equal(plan.streams[UNLABELED], torch.from_numpy(np.flatnonzero(hidden)))
    assert torch.equal(plan.streams[LABELED], torch.from_numpy(np.flatnonzero(~hidden)))
    assert plan.batch_sizes == {UNLABELED: 6, LABELED: 2}


@pytest.mark.parametrize("seed", range(5))
def test_the_alignment_is_the_published_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    solution, given = rng.random((50, 3)) ** 2, rng.integers(0, 3, 20)
    assert np.array_equal(aligned_labels(solution, given), naive_alignment(solution, given))


def test_the_alignment_moves_shares_of_classes() -> None:
    rng = np.random.default_rng(0)
    solution = rng.random((3000, 2)) * [1.0, 1.3]
    before, after = solution.argmax(axis=1).mean(), aligned_labels(solution, np.array([0, 1])).mean()
    assert before > 0.6
    assert after == pytest.approx(0.5, abs=0.02)


def test_the_warm_up_and_fully_labeled_data_use_given_labels_only() -> None:
    features, labels = clusters(0)
    labels[::2] = -1
    method = LaplaceNet(warmup=1)
    plan = method.plan(method.phases(0)[0], evidence_of(features, labels), {})
    assert list(plan.streams) == [LABELED]
    assert torch.equal(plan.streams[LABELED], torch.arange(1, 60, 2))
    labels = np.abs(labels)
    assert list(method.plan(method.phases(1)[0], evidence_of(features, labels), {}).streams) == [LABELED]


@pytest.mark.parametrize("n_views", [1, 2])
def test_the_loss_is_that_of_mixed_samples_and_targets(n_views: int) -> None:
    method = LaplaceNet(n_views=n_views)
    pseudo = torch.tensor([2, 1, 0] * 4)
    plan = Plan({UNLABELED: torch.arange(8), LABELED: torch.arange(8, 12)}, {PSEUDO_LABELS: pseudo})
    step = step_of(
        method, Phase("propagated", trains=(0,)), plan, {UNLABELED: list(range(8)), LABELED: [8, 9, 10, 11]}
    )
    X = torch.cat([batch.inputs for batch in step.batches.values()]).numpy()
    Y, weight = np.eye(C)[pseudo], step.trained.weight.detach().numpy()  # type: ignore[attr-defined]
    losses, generator = [], torch.Generator().manual_seed(3)
    for _ in range(n_views):
        own, partners = MixUp(1.0).draw(12, generator)
        other = partners.numpy()
        p = softmax((own * X + (1 - own) * X[other]) @ weight)
        losses.append(-((own * Y + (1 - own) * Y[other]) * np.log(p)).sum(axis=1).mean())
    assert float(method.loss(step).detach()) == pytest.approx(np.mean(losses), rel=1e-5)


@pytest.mark.filterwarnings("ignore")  # so few samples make the guards speak
def test_labeled_samples_see_the_first_strong_view_and_the_others_the_second() -> None:
    X, y, _ = noisy_digits(60)
    X = X.reshape(60, -1).astype(np.float32)
    y[::2] = -1
    seen: list[tuple[str, int]] = []

    def marking(name: str) -> Any:
        return lambda inputs, generator: seen.append((name, len(inputs))) or inputs

    strong = (marking("first"), marking("second"))
    settings = {"batch_size": 10, "validation_fraction": 0, "missing_label": -1, "weak": "none"}
    quick("laplacenet", {"labeled_share": 0.2}, rounds=2, strong=strong, **settings).fit(X, y)
    assert set(seen[3:]) == {("first", 2), ("second", 8), ("second", 6)}
