"""Lists of vectors and of codes, against comparisons with everything."""

import faiss
import numpy as np
import pytest

from laplaceconfidence.graph.list_scan import (
    coded_lists,
    inner_products,
    most_similar,
    scan_lists,
    vector_lists,
)
from laplaceconfidence.graph.product_codes import ProductCodes

N, D, LISTS, K = 600, 12, 10, 5


@pytest.fixture
def vectors() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(N, D)).astype(np.float32)


SIZES = np.full(LISTS, N // LISTS)


def asked(n_columns: int) -> np.ndarray:
    """Six different lists of every query, among columns without a list."""
    rng = np.random.default_rng(1)
    numbers = np.full((N, n_columns), -1)
    for row in numbers:
        row[rng.permutation(n_columns)[:6]] = rng.permutation(LISTS)[:6]
    return numbers


@pytest.mark.parametrize("n_columns", [6, 9, 25])  # 25 are more than there are lists
def test_lists_of_vectors_find_the_best_of_the_lists_that_are_asked(
    vectors: np.ndarray, n_columns: int
) -> None:
    numbers = asked(n_columns)
    index = vector_lists(vectors, SIZES, faiss.METRIC_INNER_PRODUCT)
    scores, found = scan_lists(index, vectors, numbers, K)
    for row in range(0, N, 50):
        similar = vectors @ vectors[row]
        similar[~np.isin(np.arange(N) // (N // LISTS), numbers[row])] = -np.inf
        assert found[row].tolist() == np.argsort(-similar)[:K].tolist()
        np.testing.assert_allclose(scores[row], -np.sort(-similar)[:K], rtol=1e-5)


@pytest.mark.parametrize("axes_per_code", [1, 2])
@pytest.mark.parametrize("n_columns", [6, 25])
def test_lists_of_codes_find_what_is_near_by_its_codes(
    vectors: np.ndarray, axes_per_code: int, n_columns: int
) -> None:
    numbers = asked(n_columns)
    codes = ProductCodes.fitted(vectors, axes_per_code)
    rows = codes.encoded(vectors)
    scores, found = scan_lists(coded_lists(codes, rows, SIZES), vectors @ codes.axes, numbers, 40)
    along = (vectors @ codes.axes).reshape(N, codes.n_codes, 1, axes_per_code)
    nearest = ((along - codes.centroids) ** 2).sum(axis=-1).argmin(axis=-1)
    stored = np.stack([rows & 15, rows >> 4], axis=2).reshape(N, -1)[:, : codes.n_codes]
    assert (stored == nearest).mean() > 0.999  # but for the last digit of equal distances
    decoded = codes.centroids[np.arange(codes.n_codes), stored].reshape(N, -1)
    for row in range(0, N, 50):
        distances = ((decoded - vectors[row] @ codes.axes) ** 2).sum(axis=1)
        inside = np.isin(np.arange(N) // (N // LISTS), numbers[row])
        assert inside[found[row]].all()
        # Tables of distances have eight bits.
        np.testing.assert_allclose(scores[row], np.sort(distances[inside])[:40], rtol=0.05, atol=0.3)


def test_candidates_are_compared_in_all_features(vectors: np.ndarray) -> None:
    candidates = np.random.default_rng(2).integers(-1, N, (20, 30))
    similar = inner_products(vectors[:20], vectors, candidates)
    expected = np.where(candidates < 0, -np.inf, np.einsum("id,ikd->ik", vectors[:20], vectors[candidates]))
    np.testing.assert_allclose(similar, expected, rtol=1e-4, atol=1e-5)
    found, best = most_similar(candidates, similar, K)
    np.testing.assert_array_equal(best, -np.sort(-similar, axis=1)[:, :K])
    assert (np.take_along_axis(candidates, np.argsort(-similar, axis=1), axis=1)[:, 0] == found[:, 0]).all()
