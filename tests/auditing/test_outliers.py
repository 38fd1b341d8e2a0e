"""Samples far from everything: found where there are some, few false alarms, and sane on odd data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.datasets import load_digits

from laplaceconfidence.auditing.closeness import Closest, find_closest, heaviest_neighbors
from laplaceconfidence.auditing.outliers import Outliers, find_outliers
from laplaceconfidence.evaluation.metrics import auroc
from laplaceconfidence.features.scale import unit_length
from laplaceconfidence.graph.affinity import symmetric_affinity
from laplaceconfidence.graph.neighbors import find_neighbors


def outliers_of(features: np.ndarray) -> Outliers:
    return find_outliers(find_closest(features))


def clusters(seed: int = 0, sizes: tuple[float, ...] = (0.2, 0.5, 1.0)) -> np.ndarray:
    """Three classes of very different density."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(len(sizes), 20)) * 5
    return np.vstack(
        [center + size * rng.normal(size=(200, 20)) for center, size in zip(centers, sizes, strict=True)]
    )


def test_samples_from_nowhere_are_found_among_clusters() -> None:
    rng = np.random.default_rng(1)
    strangers = rng.normal(size=(8, 20)) * 5
    found = outliers_of(np.vstack([clusters(), strangers]))
    assert found.flagged[-8:].all()
    assert found.flagged[:-8].mean() <= 0.01
    assert found.scores[-8:].max() < found.scores[:-8][~found.flagged[:-8]].min()


def test_a_stranger_near_a_dense_class_is_found_though_a_loose_class_is_looser() -> None:
    rng = np.random.default_rng(0)
    directions = np.eye(20)[:2] * 10
    dense = directions[0] + 0.05 * rng.normal(size=(300, 20))
    loose = directions[1] + 2.0 * rng.normal(size=(300, 20))
    stranger = directions[0] + 0.6 * rng.normal(size=(1, 20))
    found = outliers_of(np.vstack([dense, loose, stranger]))
    assert found.flagged[-1]


@pytest.mark.parametrize("seed", range(4))
def test_clean_clusters_give_few_false_alarms(seed: int) -> None:
    assert outliers_of(clusters(seed)).flagged.mean() <= 0.01


def test_digits_give_few_false_alarms_and_noise_among_them_is_found() -> None:
    features = load_digits().data
    assert outliers_of(features).flagged.mean() <= 0.005
    noise = np.random.default_rng(0).uniform(0, 16, size=(8, 64))
    found = outliers_of(np.vstack([features, noise]))
    assert found.flagged[-8:].all()


def test_a_digit_among_other_digits_ranks_low() -> None:
    features, labels = load_digits(return_X_y=True)
    rows = np.concatenate([np.flatnonzero(labels != 4), np.flatnonzero(labels == 4)[:8]])
    scores = outliers_of(features[rows]).scores
    assert auroc(-scores, np.arange(len(rows)) >= len(rows) - 8) > 0.9


def test_up_to_a_tenth_of_outliers_does_not_hide_itself() -> None:
    rng = np.random.default_rng(0)
    strangers = rng.normal(size=(40, 20)) * 5
    assert outliers_of(np.vstack([clusters(), strangers])).flagged[-40:].mean() > 0.9


def test_flags_follow_from_scores_and_do_not_depend_on_units_or_order() -> None:
    features = clusters()
    found = outliers_of(features)
    np.testing.assert_array_equal(found.flagged, found.scores < 0.5)
    np.testing.assert_allclose(outliers_of(features * 1e-6).scores, found.scores, rtol=1e-6)
    order = np.random.default_rng(0).permutation(len(features))
    np.testing.assert_allclose(outliers_of(features[order]).scores, found.scores[order], rtol=1e-9)


def test_fewer_than_twenty_samples_say_nothing_about_what_is_usual() -> None:
    rng = np.random.default_rng(0)
    found = outliers_of(np.vstack([rng.normal(size=(10, 3)) + 10, -np.ones((1, 3))]))
    assert not found.flagged.any()


def test_equally_far_samples_are_no_outliers_and_one_twice_as_far_is() -> None:
    angles = np.linspace(0, 2 * np.pi, 100, endpoint=False)
    ring = np.column_stack([np.cos(angles), np.sin(angles)])
    assert not outliers_of(ring).flagged.any()
    closest = find_closest(ring)
    distances = closest.distances.copy()
    distances[7] *= 2.1
    assert np.flatnonzero(find_outliers(Closest(closest.rows, distances)).flagged).tolist() == [7]


def test_neighbors_from_the_graph_of_an_estimator_are_those_of_a_search() -> None:
    features = load_digits().data
    neighbors = find_neighbors(unit_length(features), 30)
    from_graph = find_closest(features, heaviest_neighbors(symmetric_affinity(neighbors), 10))
    np.testing.assert_allclose(from_graph.distances, find_closest(features).distances, atol=1e-12)


def test_a_graph_with_too_few_neighbors_leaves_strangers() -> None:
    features = np.eye(4)
    affinity = symmetric_affinity(find_neighbors(features, 3))
    closest = find_closest(features, heaviest_neighbors(affinity, 3))
    assert (closest.rows == -1).all()
    np.testing.assert_allclose(closest.distances, np.sqrt(2))


@settings(max_examples=60, deadline=None)
@given(
    hnp.arrays(
        st.sampled_from([np.float32, np.float64]),
        st.tuples(st.integers(1, 40), st.integers(1, 4)),
        elements=st.sampled_from([0.0, -0.0, 1.0, 2.0, -1.0, 0.5, 1e-20, 1e20]),
    )
)
def test_odd_data_gives_scores_between_0_and_1(features: np.ndarray) -> None:
    found = outliers_of(features)
    assert found.scores.shape == (len(features),)
    assert ((found.scores >= 0) & (found.scores <= 1)).all()
    np.testing.assert_array_equal(found.flagged, found.scores < 0.5)
    assert found.flagged.mean() <= 0.5
