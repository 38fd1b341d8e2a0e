"""The nearest other samples: from an estimator's neighbors as good as from a search."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits

from laplaceconfidence import LaplaceConfidence, NoiseAwareConfidence
from laplaceconfidence.auditing.closeness import find_closest, intrinsic_dimension, most_similar
from laplaceconfidence.features.scale import unit_length
from laplaceconfidence.graph.affinity import symmetric_affinity
from laplaceconfidence.graph.neighborhood import Neighborhood
from laplaceconfidence.graph.neighbors import find_neighbors


def flat(n: int, m: int, width: int = 40, seed: int = 0) -> np.ndarray:
    """Points spread evenly over m dimensions of a wider space, all in nearly the same direction."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.normal(size=(width, m + 1)))[0].T
    return 5 * axes[-1] + rng.uniform(-1, 1, size=(n, m)) @ axes[:-1]


@pytest.mark.parametrize("m", [1, 2, 4, 8])
def test_the_dimension_of_evenly_spread_points_is_recovered(m: int) -> None:
    assert intrinsic_dimension(find_closest(flat(4000, m)).distances) == pytest.approx(m, rel=0.2)


def test_neighbors_of_an_estimator_are_those_of_a_search() -> None:
    features = load_digits().data
    neighborhood = Neighborhood.of_graph(symmetric_affinity(find_neighbors(unit_length(features), 30)))
    searched = find_closest(features)
    np.testing.assert_allclose(find_closest(features, neighborhood).distances, searched.distances, atol=1e-12)


@pytest.mark.parametrize("estimator", [NoiseAwareConfidence(), LaplaceConfidence(n_components=16)])
def test_neighbors_in_other_coordinates_hold_nearly_all_of_the_nearest(
    estimator: NoiseAwareConfidence | LaplaceConfidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    features, labels = load_digits(return_X_y=True)
    searched = find_closest(features)
    neighborhood = estimator.fit(features, labels).neighborhood_
    monkeypatch.delattr("laplaceconfidence.auditing.closeness.find_neighbors")
    found = find_closest(features, neighborhood)
    shared = [len(set(ours) & set(theirs)) for ours, theirs in zip(found.rows, searched.rows, strict=True)]
    assert np.mean(shared) > 9.8
    assert np.mean(np.isclose(found.reach, searched.reach)) > 0.9


def test_samples_without_similar_neighbors_are_searched() -> None:
    features = np.eye(4)
    neighborhood = Neighborhood.of_graph(symmetric_affinity(find_neighbors(features, 3)))
    closest = find_closest(features, neighborhood)
    assert (closest.rows >= 0).all()
    np.testing.assert_allclose(closest.distances, np.sqrt(2))


def test_the_largest_values_of_a_row_come_first() -> None:
    matrix = sparse.csr_array([[0, 0.5, 0.9], [0.5, 0, 0], [0, 0, 0]])
    columns, values = most_similar(matrix, 5)
    assert columns.tolist() == [[2, 1], [0, -1], [-1, -1]]
    assert values.tolist() == [[0.9, 0.5], [0.5, 0], [0, 0]]
