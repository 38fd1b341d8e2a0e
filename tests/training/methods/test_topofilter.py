"""The selection of TopoFilter against a search through the graph, sample by sample."""

from typing import Any

import numpy as np
import pytest
import torch

from laplaceconfidence.training.methods.interface import Evidence, NetworkEvidence, Problem
from laplaceconfidence.training.methods.topofilter import KEPT, TopoFilter


def evidence_of(features: Any, labels: Any, n_classes: int = 3, round: int = 0) -> Evidence:
    problem = Problem(torch.from_numpy(labels), n_classes, 10, 8, seed=0, sample_shape=(2,))
    seen = NetworkEvidence(features, np.full((len(labels), n_classes), 1 / n_classes))
    return Evidence({0: seen}, labels, problem, round, seed=0, inputs=lambda: features)


def clusters(seed: int, n: int = 60) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    true = np.arange(n) % 3
    features = np.eye(3)[true] * 6 + rng.normal(size=(n, 3))
    labels = np.where(rng.random(n) < 0.3, rng.integers(0, 3, n), true)
    return features.astype(np.float32), labels


def nearest(features: Any, rows: Any, i: int, k: int) -> list[int]:
    others = [j for j in rows if j != i]
    return sorted(others, key=lambda j: float(np.linalg.norm(features[i] - features[j])))[:k]


def naive_selection(features: Any, labels: Any, method: TopoFilter, before: Any) -> set[int]:
    rows = [i for i in range(len(labels)) if labels[i] != -1]
    linked: dict[int, set[int]] = {i: set() for i in rows}
    for i in rows:
        for j in nearest(features, rows, i, method.n_neighbors):
            if labels[i] == labels[j]:
                linked[i].add(j)
                linked[j].add(i)
    components: set[int] = set()
    for label in set(labels) - {-1}:
        left, found = {i for i in rows if labels[i] == label}, []
        while left:
            group, waiting = set(), [left.pop()]
            while waiting:
                i = waiting.pop()
                group.add(i)
                waiting += linked[i] - group
            left -= group
            found.append(group)
        largest = max(map(len, found))
        for group in found:
            components |= group if len(group) == largest else set()
    kept = components | {i for i in rows if before[i]}
    stays = set()
    for i in kept:
        votes = [labels[j] for j in nearest(features, kept, i, method.n_outlier_neighbors)]
        own = votes.count(labels[i])
        most = max(votes.count(label) for label in set(votes))
        if own == most and own >= (method.zeta or 0) * len(votes):
            stays.add(i)
    return stays


@pytest.mark.parametrize("seed", range(4))
def test_the_selection_is_that_of_a_search_through_the_graph(seed: int) -> None:
    features, labels = clusters(seed)
    labels[::11] = -1
    before = np.random.default_rng(seed).random(60) < 0.2
    method = TopoFilter(n_outlier_neighbors=8)
    found = method.select(evidence_of(features, labels), before)
    assert set(np.flatnonzero(found)) == naive_selection(features, labels, method, before)
    assert 0 < found.sum() < 54


def test_distances_are_not_those_of_directions() -> None:
    """Three groups in one direction from the origin: their cosines are all 1."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 20)
    features = np.outer(1 + labels * 10.0, np.ones(3)) + 0.01 * rng.random((60, 3))
    labels[0] = 2
    selected = TopoFilter(n_outlier_neighbors=8).select(evidence_of(features, labels), np.zeros(60, bool))
    assert set(np.flatnonzero(~selected)) == {0}


def test_without_zeta_everything_stays_and_an_emptied_class_keeps_its_component() -> None:
    features, labels = clusters(1)
    labels[:] = np.arange(60) % 3
    labels[0] = labels[1] = 2  # within other clusters
    every = TopoFilter(n_neighbors=59, zeta=None).select(evidence_of(features, labels), np.zeros(60, bool))
    assert every.all()
    labels = np.where(labels == 2, np.where(np.arange(60) < 2, 2, 0), labels)  # class 2 is wrong altogether
    found = TopoFilter(n_outlier_neighbors=8).select(evidence_of(features, labels), np.zeros(60, bool))
    assert found[labels == 2].any()


def test_it_selects_every_few_rounds_and_trains_on_that() -> None:
    method = TopoFilter(warmup=2, every=3, n_outlier_neighbors=8)
    assert [bool(method.phases(round)[0].evidence) for round in range(8)] == [False, False] + [
        True,
        False,
        False,
    ] * 2
    features, labels = clusters(2)
    evidence = evidence_of(features, labels, round=2)
    state = method.initial_state(evidence.problem)
    plan = method.plan(method.phases(2)[0], evidence, state)
    rows = plan.streams["samples"]
    assert torch.equal(rows, torch.nonzero(state[KEPT]).flatten())
    assert plan.measures["kept_share"] == pytest.approx(len(rows) / 60)
    again = method.plan(method.phases(3)[0], evidence_of(features * 0, labels, round=3), state)
    assert torch.equal(again.streams["samples"], rows)


def test_the_confidence_is_one_for_what_would_be_kept() -> None:
    features, labels = clusters(3)
    labels[0] = -1
    confidence = TopoFilter().final_confidence(evidence_of(features, labels), {})
    assert np.isnan(confidence[0])
    assert set(confidence[1:]) == {0.0, 1.0}


def test_single_samples_are_kept() -> None:
    method = TopoFilter()
    one = method.select(evidence_of(np.ones((3, 2)), np.array([-1, 0, -1])), np.zeros(3, bool))
    assert one.tolist() == [False, True, False]
