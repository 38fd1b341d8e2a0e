import faiss
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laplaceconfidence.exceptions import AdjustedSettingWarning, InvalidInputError
from laplaceconfidence.features.scale import unit_length
from laplaceconfidence.graph import inverted_file, neighbors
from laplaceconfidence.graph.cells import divide
from laplaceconfidence.graph.neighbors import (
    euclidean_neighbors,
    find_neighbors,
    fitting_neighbor_count,
    nearest_among,
)
from laplaceconfidence.graph.product_codes import scalar_codes


def clustered(n: int, d: int, seed: int = 0, n_centers: int = 20) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(n_centers, d))
    return unit_length(
        (centers[rng.integers(n_centers, size=n)] + 0.5 * rng.normal(size=(n, d))).astype(np.float32)
    )


def naive_neighbors(points: np.ndarray, k: int) -> np.ndarray:
    similarities = points.astype(np.float64) @ points.T.astype(np.float64)
    np.fill_diagonal(similarities, -np.inf)
    return np.argsort(-similarities, axis=1)[:, :k]


@settings(max_examples=30, deadline=None)
@given(st.integers(3, 60), st.integers(2, 8), st.integers(1, 10), st.integers(0, 10_000))
def test_exact_search_finds_what_sorting_everything_finds(n: int, d: int, k: int, seed: int) -> None:
    k = min(k, n - 1)
    points = unit_length(np.random.default_rng(seed).normal(size=(n, d)))
    found = find_neighbors(points, k, search="exact")
    expected = naive_neighbors(points, k)
    rows = np.arange(n)[:, None]
    # Compared by similarity, not by index: points may tie in float32.
    np.testing.assert_allclose(
        found.similarities, np.einsum("id,ikd->ik", points, points[expected]), atol=1e-6
    )
    np.testing.assert_allclose(
        found.similarities, np.einsum("id,ikd->ik", points, points[found.indices]), atol=1e-6
    )
    assert (found.indices != rows).all()
    assert found.recall == 1.0
    assert found.search == "exact"


def test_auto_takes_the_exact_search_for_few_samples() -> None:
    assert find_neighbors(clustered(200, 8), 5).search == "exact"


@pytest.mark.parametrize("d", [16, 200])
def test_ivf_reaches_the_recall_it_reports(d: int) -> None:
    points = clustered(6000, d)
    found = find_neighbors(points, 20, search="ivf", target_recall=0.95, random_state=0)
    exact = find_neighbors(points, 20, search="exact")
    hits = [len(set(a) & set(b)) / 20 for a, b in zip(found.indices, exact.indices, strict=True)]
    assert found.search == "ivf"
    assert np.mean(hits) >= 0.93
    assert abs(np.mean(hits) - found.recall) < 0.03
    assert (np.diff(found.similarities, axis=1) <= 1e-6).all()
    ordered = find_neighbors(points, 20, search="ivf", random_state=0, ordered=True)
    assert ordered.order is not None
    assert not np.array_equal(ordered.order, np.arange(6000))
    np.testing.assert_array_equal(ordered.by_sample().indices, found.indices)
    np.testing.assert_array_equal(ordered.by_sample().similarities, found.similarities)


@pytest.mark.parametrize("k", [1, 2])
def test_the_sample_itself_does_not_count_as_a_found_neighbor(k: int) -> None:
    points = np.random.default_rng(0).normal(size=(8000, 16)).astype(np.float32)  # hard: no clusters
    found = find_neighbors(points, k, search="ivf", target_recall=0.2, random_state=0)
    exact = find_neighbors(points, k, search="exact")
    hits = [len(set(a) & set(b)) / k for a, b in zip(found.indices, exact.indices, strict=True)]
    assert np.mean(hits) < 0.9
    assert found.recall == pytest.approx(np.mean(hits), abs=0.08)  # measured on 128 queries


def test_a_higher_target_gives_a_higher_recall() -> None:
    points = clustered(6000, 24)
    low, high = (
        find_neighbors(points, 20, search="ivf", target_recall=target, random_state=0).recall
        for target in (0.5, 0.999)
    )
    assert low <= high
    assert high >= 0.995  # the target is reached on the queries that the effort is chosen on


def test_an_approximate_search_finds_more_than_its_target_on_any_structure() -> None:
    rng = np.random.default_rng(0)
    curve = rng.random((3000, 1)) * np.arange(1, 33)
    low_dimensional = unit_length(np.cos(curve + rng.normal(size=(1, 32))).astype(np.float32))
    structureless = unit_length(rng.normal(size=(3000, 12)).astype(np.float32))
    for points in (low_dimensional, structureless, clustered(3000, 301)):
        found = find_neighbors(points, 15, search="ivf", target_recall=0.9, random_state=1)
        exact = find_neighbors(points, 15, search="exact")
        assert (found.similarities >= exact.similarities[:, -1:] - 1e-5).mean() >= 0.88
        assert (found.indices != np.arange(3000)[:, None]).all()
        expected = np.einsum("id,ikd->ik", points, points[found.indices])
        np.testing.assert_allclose(found.similarities, expected, atol=1e-5)


@pytest.mark.parametrize("n", [2, 5, 17, 255, 256, 300])
def test_tiny_data_can_be_searched_approximately(n: int) -> None:
    points = clustered(n, 3, n_centers=2)
    found = find_neighbors(points, n - 1 if n < 20 else 20, search="ivf", target_recall=1.0, random_state=0)
    exact = find_neighbors(points, found.indices.shape[1], search="exact")
    assert (np.abs(found.similarities - exact.similarities) < 1e-5).mean() > 0.99


def test_the_search_is_exact_where_that_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbors, "IVF_FROM", 500)
    points = clustered(600, 48)
    monkeypatch.setattr(inverted_file, "EXACT_NANOSECONDS", 1e9)
    assert find_neighbors(points, 5, random_state=0).search == "ivf"
    monkeypatch.setattr(inverted_file, "EXACT_NANOSECONDS", 0.0)
    found = find_neighbors(points, 5, random_state=0)
    assert (found.search, found.recall) == ("exact", 1.0)
    assert find_neighbors(points, 5, search="ivf", random_state=0).search == "ivf"


def test_scalar_codes_are_those_of_faiss() -> None:
    vectors = np.random.default_rng(0).normal(size=(500, 6)).astype(np.float32)
    quantizer = faiss.ProductQuantizer(6, 6, 4)
    quantizer.train(vectors)
    levels = faiss.vector_to_array(quantizer.centroids).reshape(6, 16)
    expected = quantizer.compute_codes(vectors)
    np.testing.assert_array_equal(scalar_codes(vectors, levels), expected)


def test_codes_of_one_component_are_tried_where_two_need_many_candidates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    points = unit_length(np.random.default_rng(0).normal(size=(3000, 21)).astype(np.float32))
    monkeypatch.setattr(inverted_file, "FINER_FROM", 1)
    found = find_neighbors(points, 10, search="ivf", random_state=0)
    exact = find_neighbors(points, 10, search="exact")
    assert (found.similarities >= exact.similarities[:, -1:] - 1e-5).mean() >= 0.93


def test_equal_points_do_not_make_one_large_cell() -> None:
    points = np.concatenate([np.zeros((3000, 8)), np.eye(8).repeat(500, axis=0)]).astype(np.float32)
    cells = divide(points, 64, seed=0)
    assert cells.sizes.min() > 0
    assert cells.sizes.max() <= 4 * 64
    np.testing.assert_array_equal(np.sort(cells.order), np.arange(len(points)))
    found = find_neighbors(points, 10, search="ivf", random_state=0)
    np.testing.assert_allclose(
        found.similarities, np.repeat([0.0, 1.0], [3000, 4000])[:, None] + np.zeros(10)
    )


def test_threads_do_not_change_what_is_found() -> None:
    points = clustered(9000, 20)
    one, three = (find_neighbors(points, 10, search="ivf", random_state=0, n_jobs=n) for n in (1, 3))
    np.testing.assert_array_equal(one.indices, three.indices)
    assert one.recall == three.recall


def test_ivf_is_repeatable_with_a_seed() -> None:
    points = clustered(3000, 16)
    first, second = (find_neighbors(points, 10, search="ivf", random_state=3) for _ in range(2))
    np.testing.assert_array_equal(first.indices, second.indices)


@pytest.mark.parametrize("search", ["exact", "ivf"])
def test_a_sample_is_left_out_by_identity_even_among_many_duplicates(search: str) -> None:
    points = np.repeat(clustered(40, 6), 30, axis=0)  # every point stands there 30 times
    found = find_neighbors(points, 10, search=search, random_state=0)
    assert (found.indices != np.arange(len(points))[:, None]).all()
    np.testing.assert_allclose(found.similarities, 1, atol=1e-5)


def test_zero_vectors_are_similar_to_nothing() -> None:
    points = clustered(50, 4)
    points[:3] = 0
    found = find_neighbors(points, 5)
    assert (found.similarities[:3] == 0).all()


def test_similarities_come_in_the_precision_of_the_features() -> None:
    points = clustered(100, 10).astype(np.float64)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    found = find_neighbors(points, 4)
    assert found.similarities.dtype == np.float64
    np.testing.assert_allclose(
        found.similarities, np.einsum("id,ikd->ik", points, points[found.indices]), rtol=1e-14
    )


def test_nearest_among_includes_equal_points() -> None:
    points = clustered(100, 10)
    indices, similarities = nearest_among(points[:7], points, 3)
    np.testing.assert_array_equal(indices[:, 0], np.arange(7))
    np.testing.assert_allclose(similarities[:, 0], 1, atol=1e-5)


def test_k_is_lowered_with_a_warning_that_says_so() -> None:
    with pytest.warns(
        AdjustedSettingWarning, match="'n_neighbors' was lowered from 50 to 9: there are only 10"
    ):
        assert fitting_neighbor_count(50, 10) == 9


@pytest.mark.parametrize("search", ["fast", None, 3])
def test_an_unknown_search_is_refused(search: object) -> None:
    with pytest.raises(InvalidInputError, match="'search' parameter must be one of 'auto', 'exact', 'ivf'"):
        find_neighbors(clustered(10, 3), 2, search=search)  # type: ignore[arg-type]


def test_the_first_neighbors_are_those_of_a_smaller_search() -> None:
    points = clustered(60, 5)
    wide, narrow = find_neighbors(points, 12), find_neighbors(points, 4)
    first = wide.first(4)
    np.testing.assert_array_equal(first.indices, narrow.indices)
    np.testing.assert_array_equal(first.similarities, narrow.similarities)
    assert (first.search, first.recall) == (wide.search, wide.recall)


def test_euclidean_neighbors_are_nearest_by_distance_and_never_the_point_itself() -> None:
    points = np.random.default_rng(0).normal(size=(50, 4)) + 100  # far from the origin: centered before
    points[1] = points[0]
    found = euclidean_neighbors(points, 5)
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    np.fill_diagonal(distances, np.inf)
    expected = np.sort(distances, axis=1)[:, :5]
    np.testing.assert_allclose(np.take_along_axis(distances, found.indices, axis=1), expected, rtol=1e-5)
    np.testing.assert_allclose(found.similarities, 1 / (1 + expected**2), rtol=1e-3)
    assert found.indices[0, 0] == 1
    with pytest.raises(InvalidInputError, match="n_neighbors"):
        euclidean_neighbors(points, 50)
