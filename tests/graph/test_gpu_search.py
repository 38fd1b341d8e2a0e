"""The search on a GPU, with a stand-in for the functions that faiss has with GPU support only."""

from typing import Any

import faiss
import numpy as np
import pytest

from laplaceconfidence.graph import gpu_search, neighbors
from laplaceconfidence.graph.neighbors import find_neighbors

N, D, K = 500, 8, 6


@pytest.fixture
def points() -> np.ndarray:
    found = np.random.default_rng(0).normal(size=(N, D)).astype(np.float32)
    found[:3] = found[0]  # copies
    return found / np.linalg.norm(found, axis=1, keepdims=True)


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Pretend that there is a GPU; numbers of queries that it was given are listed."""
    calls: list[int] = []

    def knn_gpu(resources: Any, queries: np.ndarray, points: np.ndarray, k: int, **named: Any) -> Any:
        assert resources == "resources"
        assert named.pop("vectorsMemoryLimit") > 0
        assert named.pop("queriesMemoryLimit") > 0
        calls.append(len(queries))
        return faiss.knn(queries, points, k, **named)

    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 1, raising=False)
    monkeypatch.setattr(faiss, "StandardGpuResources", lambda: "resources", raising=False)
    monkeypatch.setattr(faiss, "knn_gpu", knn_gpu, raising=False)
    monkeypatch.setattr(neighbors, "IVF_FROM", 100)
    monkeypatch.setattr(gpu_search, "QUERIES_AT_ONCE", 200)
    return calls


def test_it_finds_what_an_exact_search_finds(points: np.ndarray, searched: list[int]) -> None:
    found = find_neighbors(points, K, search="auto")
    assert searched == [200, 200, 100]
    assert (found.search, found.recall, found.order) == ("exact", 1.0, None)
    expected = find_neighbors(points, K, search="exact")
    np.testing.assert_allclose(found.similarities, expected.similarities, atol=1e-6)
    np.testing.assert_array_equal(found.indices[3:], expected.indices[3:])
    assert (found.indices != np.arange(N)[:, None]).all()
    as_double = find_neighbors(points.astype(np.float64), K)
    assert as_double.similarities.dtype == np.float64


@pytest.mark.parametrize("search", ["exact", "ivf"])
def test_it_is_used_by_auto_only(points: np.ndarray, searched: list[int], search: str) -> None:
    find_neighbors(points, K, search=search, random_state=0)
    assert searched == []


@pytest.mark.parametrize(
    ("name", "value"), [("MOST_POINTS", N - 1), ("MOST_NEIGHBORS", K)], ids=["points", "neighbors"]
)
def test_what_is_too_much_is_searched_on_the_cpu(
    points: np.ndarray, searched: list[int], monkeypatch: pytest.MonkeyPatch, name: str, value: int
) -> None:
    monkeypatch.setattr(gpu_search, name, value)
    assert len(find_neighbors(points, K, random_state=0).indices) == N
    assert searched == []


def test_few_samples_are_searched_on_the_cpu(points: np.ndarray, searched: list[int]) -> None:
    find_neighbors(points[:99], K)
    assert searched == []


def test_without_a_gpu_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 0, raising=False)
    assert not gpu_search.can_search_on_gpu(N, K)
    monkeypatch.delattr(faiss, "get_num_gpus")
    assert not gpu_search.can_search_on_gpu(N, K)
