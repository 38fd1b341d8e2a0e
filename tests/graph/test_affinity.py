from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.neighbors import kneighbors_graph

from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.features.scale import unit_length
from laplaceconfidence.graph import affinity
from laplaceconfidence.graph.affinity import (
    OrderedGraph,
    affinity_from_knn_graph,
    by_sample,
    degrees,
    in_order,
    normalized,
    normalized_graph,
    symmetric_affinity,
)
from laplaceconfidence.graph.neighbors import find_neighbors


@pytest.fixture
def points() -> np.ndarray:
    return unit_length(np.random.default_rng(0).normal(size=(80, 5)))


def naive_affinity(points: np.ndarray, k: int) -> np.ndarray:
    n = len(points)
    weights = np.zeros((n, n))
    for i in range(n):
        similarities = points @ points[i]
        similarities[i] = -np.inf
        for j in np.argsort(-similarities)[:k]:
            weights[i, j] = max(similarities[j], 0)
    return np.maximum(weights, weights.T)


def test_affinity_is_the_larger_of_both_directions_clipped_at_zero(points: np.ndarray) -> None:
    # k = 60 of 79 reaches points on the other side, whose inner products are negative.
    for k in (3, 60):
        affinity = symmetric_affinity(find_neighbors(points, k))
        np.testing.assert_allclose(affinity.toarray(), naive_affinity(points, k), atol=1e-12)
        assert affinity.data.min() > 0


def test_normalized_graph_has_spectrum_within_one(points: np.ndarray) -> None:
    affinity = symmetric_affinity(find_neighbors(points, 6))
    graph = normalized(affinity, degrees(affinity)).toarray()
    values = np.linalg.eigvalsh(graph)
    np.testing.assert_allclose(graph, graph.T, atol=1e-12)
    assert values.max() == pytest.approx(1)
    assert values.min() >= -1


def test_a_node_without_neighbors_has_degree_one() -> None:
    lonely = sparse.csr_array(np.array([[0, 0.5, 0], [0.5, 0, 0], [0, 0, 0]]))
    np.testing.assert_array_equal(degrees(lonely), [0.5, 0.5, 1])


def test_a_cosine_distance_graph_is_our_own_graph(points: np.ndarray) -> None:
    theirs = kneighbors_graph(points, 6, mode="distance", metric="cosine")
    ours = symmetric_affinity(find_neighbors(points, 6))
    brought = affinity_from_knn_graph(theirs, 80, kind="cosine_distance", dtype=np.float64)
    np.testing.assert_allclose(brought.toarray(), ours.toarray(), atol=1e-12)


def test_equal_points_at_distance_zero_stay_joined() -> None:
    distances = sparse.csr_array(
        (np.array([0.0, 2.0]), np.array([1, 2]), np.array([0, 1, 2, 2])), shape=(3, 3)
    )
    brought = affinity_from_knn_graph(distances, 3, kind="distance", dtype=np.float64).toarray()
    assert brought[0, 1] == brought[1, 0] == 1
    assert 0 < brought[1, 2] < 1


def test_the_diagonal_and_one_sided_edges_are_dealt_with() -> None:
    one_sided = sparse.csr_matrix(np.array([[9.0, 0.5, 0], [0.2, 9, 0], [0, 0.7, 9]]))
    brought = affinity_from_knn_graph(one_sided, 3).toarray()
    np.testing.assert_allclose(brought, np.array([[0, 0.5, 0], [0.5, 0, 0.7], [0, 0.7, 0]], np.float32))
    assert one_sided[0, 0] == 9  # the user's graph is not touched


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (np.eye(3), "'knn_graph' parameter must be a scipy sparse matrix. Got 'ndarray'"),
        (sparse.csr_array((4, 3)), r"must be of shape \(3, 3\). Got 'shape \(4, 3\)'"),
        (sparse.csr_array(np.full((3, 3), np.nan)), "must be finite. Got 9 NaN or infinite weights"),
        (sparse.csr_array(-np.ones((3, 3))), r"must be of non-negative weights. Got -1\.0"),
        (sparse.csr_array(np.ones((3, 3), dtype=complex)), "must be real numbers"),
    ],
)
def test_bad_graphs_are_refused_by_name(graph: object, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        affinity_from_knn_graph(graph, 3)


def test_a_normalized_graph_of_fewer_neighbors_comes_from_the_same_search(points: np.ndarray) -> None:
    affinity = symmetric_affinity(find_neighbors(points, 3))
    expected = normalized(affinity, degrees(affinity)).toarray()
    np.testing.assert_allclose(normalized_graph(find_neighbors(points, 20), 3).toarray(), expected)


def test_the_symmetric_graph_does_not_depend_on_the_blocks_it_is_made_in(
    points: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    neighbors = find_neighbors(points, 7)
    whole = symmetric_affinity(neighbors)
    monkeypatch.setattr(affinity, "_ROWS_PER_BLOCK", 11)
    monkeypatch.setattr(affinity, "_TRANSPOSED_ROWS", 33)
    cut = symmetric_affinity(neighbors)
    n = len(points)
    directed = np.zeros((n, n))
    directed[np.arange(n)[:, None], neighbors.indices] = np.maximum(neighbors.similarities, 0)
    for graph in (whole, cut):
        np.testing.assert_array_equal(graph.toarray(), np.maximum(directed, directed.T))
        assert graph.has_sorted_indices
        assert graph.nnz == len(graph.data) == len(graph.indices)
    np.testing.assert_array_equal(
        normalized(cut, degrees(cut)).toarray(), normalized(whole, degrees(whole)).toarray()
    )


def test_an_ordered_graph_is_the_same_graph_with_other_numbers(points: np.ndarray) -> None:
    graph = symmetric_affinity(find_neighbors(points, 5))
    order = np.random.default_rng(0).permutation(len(points))
    ordered = in_order(sparse.csr_array(graph.toarray()[np.ix_(order, order)]), order)
    assert isinstance(ordered, OrderedGraph)
    back = by_sample(ordered)
    np.testing.assert_array_equal(back.toarray(), graph.toarray())
    assert back.has_sorted_indices
    assert in_order(graph, None) is by_sample(graph) is graph


def test_the_graph_of_neighbors_in_an_order_is_the_renumbered_one(points: np.ndarray) -> None:
    neighbors = find_neighbors(points, 5)
    neighbors.indices[3, 2:], neighbors.similarities[3, 2:] = -1, -np.inf  # fewer were found
    order = np.random.default_rng(0).permutation(len(points))
    number = np.argsort(order)
    indices = np.where(neighbors.indices[order] < 0, -1, number[neighbors.indices[order]]).astype(np.int32)
    ordered = replace(neighbors, indices=indices, similarities=neighbors.similarities[order], order=order)
    np.testing.assert_array_equal(ordered.by_sample().indices, neighbors.indices)
    np.testing.assert_array_equal(ordered.by_sample().similarities, neighbors.similarities)
    made = normalized_graph(ordered, 5)
    assert isinstance(made, OrderedGraph)
    expected = normalized_graph(neighbors, 5)
    np.testing.assert_allclose(by_sample(made).toarray(), expected.toarray(), rtol=1e-6)
