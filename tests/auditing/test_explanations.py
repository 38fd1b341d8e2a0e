"""Explanations against a plain count of neighbors."""

import numpy as np
import pytest

from laplaceconfidence import NoisyDataset, audit, find_label_issues
from laplaceconfidence.exceptions import InvalidInputError


def naive_neighbors(features: np.ndarray, k: int) -> np.ndarray:
    """Similarities (n, n) of the symmetric graph, by sorting all cosines."""
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -np.inf)
    graph = np.zeros_like(cosines)
    for i, row in enumerate(cosines):
        for j in np.argsort(-row)[:k]:
            graph[i, j] = graph[j, i] = max(row[j], 0)
    return graph


def test_neighbors_are_those_of_the_graph_as_loud_as_the_method_hears_them(heaps: NoisyDataset) -> None:
    result = audit(heaps, estimator="laplace", n_neighbors=6)
    graph = naive_neighbors(heaps.features, 6)
    degree = graph.sum(axis=1)
    scores = result.table.sort_index().label_score
    for row in range(40):
        found = result.explain(row).neighbors
        expected = np.flatnonzero(graph[row])
        assert sorted(found.index) == expected.tolist()
        np.testing.assert_allclose(found.similarity, graph[row, found.index], rtol=1e-6)
        loudness = graph[row] / np.sqrt(degree[row] * degree)
        np.testing.assert_allclose(found.weight, loudness[found.index] / loudness.sum(), rtol=1e-6)
        assert found.weight.is_monotonic_decreasing
        np.testing.assert_allclose(found.label_score, scores[found.index])
        same = heaps.labels[found.index] == heaps.labels[row]
        assert found.speaks.tolist() == np.where(same, "for", "against").tolist()
        assert found.given_label.tolist() == heaps.labels_as_written()[found.index].tolist()


def test_the_wrong_ones_hear_more_against_than_for(heaps: NoisyDataset, wrong_rows: list[int]) -> None:
    result = audit(heaps, n_neighbors=6)
    for row in wrong_rows:
        told = result.explain(row)
        assert told.weight_against > 0.7 > told.weight_for
        assert told.weight_for + told.weight_against == pytest.approx(1)
        assert told.votes.index[0] == told.predicted_label != told.given_label
        assert told.votes.weight.sum() == pytest.approx(1)
        assert told.votes.n_neighbors.sum() == len(told.neighbors)
        assert f"Sample sample-{row} is labeled '{told.given_label}'" in str(told)
        assert f"say '{told.predicted_label}'" in str(told)


def test_a_sample_is_found_by_row_and_by_id(heaps: NoisyDataset) -> None:
    result = audit(heaps, n_neighbors=6)
    by_row, by_id = result.explain(3), result.explain("sample-3")
    assert by_row.row == by_id.row == 3
    assert by_row.id == "sample-3"


@pytest.mark.parametrize("sample", [40, -1, "3", 1.5, None])
def test_a_sample_that_does_not_exist_is_refused(heaps: NoisyDataset, sample: object) -> None:
    with pytest.raises(InvalidInputError, match="'sample'"):
        audit(heaps, n_neighbors=6).explain(sample)  # type: ignore[arg-type]


def test_neighbors_without_label_are_silent_and_speak_about_the_prediction(heaps: NoisyDataset) -> None:
    labels = heaps.labels.copy()
    labels[[0, 1, 2]] = -1
    result = audit(heaps.with_labels(labels), n_neighbors=19)
    told = result.explain(0)
    assert told.given_label is None
    assert np.isnan(told.label_score)
    assert set(told.neighbors.loc[[1, 2], "speaks"]) == {"silent"}
    assert told.predicted_label == "left"
    assert told.weight_for > 0.5
    assert "has no label; 'left' is the most probable" in str(told)
    assert told.votes.n_neighbors.sum() == len(told.neighbors) - 2


def test_votes_are_explained_by_those_who_voted(heaps: NoisyDataset) -> None:
    result = audit(heaps, estimator="knn-vote", n_neighbors=5)
    unit = heaps.features / np.linalg.norm(heaps.features, axis=1, keepdims=True)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -np.inf)
    for row in (3, 20):
        told = result.explain(row)
        nearest = np.argsort(-cosines[row])[:5]
        assert sorted(told.neighbors.index) == sorted(nearest)
        assert told.weight_for == pytest.approx(told.label_score, rel=1e-5)


def test_who_asks_nobody_can_name_nobody() -> None:
    result = find_label_issues([0, 1], pred_probs=np.eye(2))
    with pytest.raises(InvalidInputError, match="asked no neighbors"):
        result.explain(0)


def test_a_sample_without_neighbors_is_explained_as_such() -> None:
    features = np.array([[0.0, 0.0], [1, 0], [1, 0.1], [0, 1], [0.1, 1]])
    told = find_label_issues([0, 0, 0, 1, 1], features, n_neighbors=2).explain(0)
    assert told.neighbors.empty
    assert str(told).endswith("It has no neighbors.")
