"""D2L: the dimensionality against its formula, the turning point and the weights of labels by hand."""

import math

import numpy as np
import pytest
import torch
from method_steps import softmax, whole_batch_step
from test_topofilter import evidence_of

from laplaceconfidence.training.methods.d2l import D2L, DIMENSIONS, TURNING_ROUND, local_dimensionality
from laplaceconfidence.training.methods.interface import Plan


def test_the_dimensionality_is_that_of_the_formula() -> None:
    points = np.random.default_rng(0).normal(size=(30, 4))
    found = local_dimensionality(points, 6)
    for i in range(30):
        distances = sorted(np.linalg.norm(points[i] - points[j]) for j in range(30) if j != i)[:6]
        expected = -1 / (sum(math.log(r / distances[-1]) for r in distances) / 6)
        assert found[i] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("dimensions", [1, 2, 5])
def test_the_dimensionality_of_a_cube_is_its_own(dimensions: int) -> None:
    rng = np.random.default_rng(dimensions)
    embedded = rng.random((2000, dimensions)) @ rng.normal(size=(dimensions, 10))
    assert np.mean(local_dimensionality(embedded, 100)) == pytest.approx(dimensions, rel=0.2)


def test_duplicates_are_finite_and_equal_points_undefined() -> None:
    points = np.concatenate([np.zeros((2, 3)), np.random.default_rng(0).normal(size=(8, 3))])
    assert np.isfinite(local_dimensionality(points, 5)).all()
    assert np.isnan(local_dimensionality(np.ones((5, 2)), 3)).all()
    assert np.isnan(local_dimensionality(np.ones((1, 2)), 3)).all()


def test_the_turning_point_is_a_rise_of_two_deviations() -> None:
    method = D2L(warmup=2, window=3)
    before = [5.0, 4.0, 3.0, 2.0, 1.0]  # mean 2 and deviation 0.816 of the last three
    assert not method.turns([9.0] * 5)
    assert not method.turns([*before, 2 + 2 * 0.816])
    assert method.turns([*before, 2 + 2 * 0.817])
    assert not method.turns([*before[1:], 99.0])  # too early


def test_labels_lose_weight_after_the_turning_point() -> None:
    method = D2L(warmup=0, window=1, n_deviations=0, n_neighbors=5)
    rng = np.random.default_rng(0)
    labels = np.arange(200) % 3
    state = method.initial_state(evidence_of(np.zeros((200, 9)), labels).problem)
    weights = []
    for round, dimensions in enumerate((3, 1, 4, 2)):
        features = rng.random((200, dimensions)) @ rng.normal(size=(dimensions, 9))
        plan = method.plan(method.phases(round)[0], evidence_of(features, labels, round=round), state)
        weights.append(plan.measures["label_weight"])
    seen = state[DIMENSIONS].tolist()
    assert int(state[TURNING_ROUND]) == 2
    assert weights[:2] == [1, 1]
    assert weights[2] == pytest.approx(math.exp(-0.2 * seen[2] / seen[1]))
    assert weights[3] == pytest.approx(math.exp(-0.3 * seen[3] / seen[1]))


def test_features_without_a_dimensionality_repeat_the_last_one() -> None:
    method, labels = D2L(), np.arange(20) % 3
    state = method.initial_state(evidence_of(np.zeros((20, 2)), labels).problem)
    features = np.random.default_rng(0).random((20, 2))
    for one in (features, np.zeros((20, 2))):
        method.plan(method.phases(0)[0], evidence_of(one, labels), state)
    assert state[DIMENSIONS][0] == state[DIMENSIONS][1]


@pytest.mark.parametrize("weight", [1.0, 0.3])
def test_the_loss_mixes_given_and_predicted_labels(weight: float) -> None:
    plan = Plan({"samples": torch.arange(12)}, measures={"label_weight": weight})
    method = D2L()
    step = whole_batch_step(method, method.phases(0)[0], plan)
    p, given = softmax(step.trained(step.batch.inputs)), step.batch.labels.numpy()
    rows = np.arange(12)
    expected = -(weight * np.log(p[rows, given]) + (1 - weight) * np.log(p[rows, p.argmax(axis=1)])).mean()
    assert float(method.loss(step).detach()) == pytest.approx(expected, rel=1e-5)
