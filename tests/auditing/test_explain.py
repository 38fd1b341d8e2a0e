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


def test_neighbors_are_those_of_the_graph_with_the_weights_of_the_estimator(heaps: NoisyDataset) -> None:
    result = audit(heaps, estimator="laplace", n_neighbors=6)
    graph = naive_neighbors(heaps.features, 6)
    degree = graph.sum(axis=1)
    scores = result.table.sort_index().label_score
    for row in range(40):
        found = result.explain(row).neighbors
        expected = np.flatnonzero(graph[row])
        assert sorted(found.index) == expected.tolist()
        np.testing.assert_allclose(found.similarity, graph[row, found.index], rtol=1e-6)
        weights = graph[row] / np.sqrt(degree[row] * degree)
        np.testing.assert_allclose(found.weight, weights[found.index] / weights.sum(), rtol=1e-6)
        assert found.weight.is_monotonic_decreasing
        np.testing.assert_allclose(found.label_score, scores[found.index])
        same = heaps.labels[found.index] == heaps.labels[row]
        assert found.position.tolist() == np.where(same, "agrees", "disagrees").tolist()
        assert found.given_label.tolist() == heaps.labels_as_written()[found.index].tolist()


def test_neighbors_of_wrong_labels_mostly_disagree(heaps: NoisyDataset, wrong_rows: list[int]) -> None:
    result = audit(heaps, n_neighbors=6)
    for row in wrong_rows:
        found = result.explain(row)
        assert found.weight_disagreeing > 0.7 > found.weight_agreeing
        assert found.weight_agreeing + found.weight_disagreeing == pytest.approx(1)
        assert found.votes.index[0] == found.predicted_label != found.given_label
        assert found.votes.weight.sum() == pytest.approx(1)
        assert found.votes.n_neighbors.sum() == len(found.neighbors)
        assert f"Sample sample-{row} is labeled '{found.given_label}'" in str(found)
        assert f"labeled '{found.predicted_label}'" in str(found)


def test_a_sample_is_found_by_row_and_by_id(heaps: NoisyDataset) -> None:
    result = audit(heaps, n_neighbors=6)
    by_row, by_id = result.explain(3), result.explain("sample-3")
    assert by_row.row == by_id.row == 3
    assert by_row.id == "sample-3"


@pytest.mark.parametrize("sample", [40, -1, "3", 1.5, None])
def test_a_sample_that_does_not_exist_is_refused(heaps: NoisyDataset, sample: object) -> None:
    with pytest.raises(InvalidInputError, match="'sample'"):
        audit(heaps, n_neighbors=6).explain(sample)  # type: ignore[arg-type]


def test_without_a_given_label_neighbors_are_compared_with_the_prediction(
    heaps: NoisyDataset,
) -> None:
    labels = heaps.labels.copy()
    labels[[0, 1, 2]] = -1
    result = audit(heaps.with_labels(labels), n_neighbors=19)
    found = result.explain(0)
    assert found.given_label is None
    assert np.isnan(found.label_score)
    assert set(found.neighbors.loc[[1, 2], "position"]) == {"no label"}
    assert found.predicted_label == "left"
    assert found.weight_agreeing > 0.5
    assert "has no label; 'left' is the most probable" in str(found)
    assert found.votes.n_neighbors.sum() == len(found.neighbors) - 2


def test_votes_are_explained_by_the_neighbors_that_voted(heaps: NoisyDataset) -> None:
    result = audit(heaps, estimator="knn-vote", n_neighbors=5)
    unit = heaps.features / np.linalg.norm(heaps.features, axis=1, keepdims=True)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -np.inf)
    for row in (3, 20):
        found = result.explain(row)
        nearest = np.argsort(-cosines[row])[:5]
        assert sorted(found.neighbors.index) == sorted(nearest)
        assert found.weight_agreeing == pytest.approx(found.label_score, rel=1e-5)


def test_an_estimator_without_neighbors_cannot_explain() -> None:
    result = find_label_issues([0, 1], pred_probs=np.eye(2))
    with pytest.raises(InvalidInputError, match="used no neighbors"):
        result.explain(0)


def test_a_sample_without_neighbors_is_explained_as_such() -> None:
    features = np.array([[0.0, 0.0], [1, 0], [1, 0.1], [0, 1], [0.1, 1]])
    found = find_label_issues([0, 0, 0, 1, 1], features, n_neighbors=2).explain(0)
    assert found.neighbors.empty
    assert str(found).endswith("It has no neighbors.")


def test_the_default_estimator_is_explained_by_its_own_graph(heaps: NoisyDataset) -> None:
    result = audit(heaps, n_neighbors=(5, 8))
    neighborhood = result.estimator.neighborhood_
    assert neighborhood is not None
    for row in (0, 3, 25):
        found = result.explain(row).neighbors
        expected = neighborhood.of(row)
        assert found.index.tolist() == expected.rows.tolist()
        np.testing.assert_allclose(found.weight, expected.shares)
        assert len(found) >= 5
