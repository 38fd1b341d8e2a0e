"""Copies within a set and across two sets: exact ones always, near ones without false alarms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.datasets import load_digits

from laplaceconfidence.auditing.closeness import Closest, copy_share, distances_to, find_closest
from laplaceconfidence.auditing.duplicates import (
    Leakage,
    NearDuplicates,
    conflicting,
    find_leakage,
    find_near_duplicates,
)
from laplaceconfidence.auditing.equal_rows import groups_of_equal_rows
from laplaceconfidence.features.scale import unit_length

odd_features = hnp.arrays(
    st.sampled_from([np.float32, np.float64]),
    st.tuples(st.integers(1, 40), st.integers(1, 4)),
    elements=st.sampled_from([0.0, -0.0, 1.0, 2.0, -1.0, 0.5, 1e-20, 1e20]),
)


def copies_in(features: np.ndarray) -> NearDuplicates:
    return find_near_duplicates(features, find_closest(features))


def flat(n: int, m: int, width: int = 40, seed: int = 0) -> np.ndarray:
    """Points spread evenly over m dimensions of a wider space, all in nearly the same direction."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.normal(size=(width, m + 1)))[0].T
    return 5 * axes[-1] + rng.uniform(-1, 1, size=(n, m)) @ axes[:-1]


@pytest.mark.parametrize("m", [1, 2, 5, 15, 30])
def test_chance_makes_almost_no_copies_whatever_the_dimension(m: int) -> None:
    assert copies_in(flat(3000, m, seed=m)).flagged.mean() <= 0.002


def test_clusters_of_very_different_density_give_no_false_alarms() -> None:
    rng = np.random.default_rng(0)
    heaps = [
        center + size * rng.normal(size=(400, 10))
        for center, size in zip(rng.normal(size=(4, 10)) * 5, (0.01, 0.1, 0.5, 1.0), strict=True)
    ]
    assert copies_in(np.vstack(heaps)).flagged.mean() <= 0.002


def test_digits_have_no_copies_and_planted_ones_are_found() -> None:
    features = load_digits().data
    assert not copies_in(features).flagged.any()
    rng = np.random.default_rng(0)
    rows = rng.choice(len(features), 30, replace=False)
    slightly_other = features[rows] + rng.normal(scale=0.3, size=(30, 64))
    found = copies_in(np.vstack([features, slightly_other]))
    new = np.arange(len(features), len(features) + 30)
    assert found.flagged[new].all()
    np.testing.assert_array_equal(found.copy_of[new], rows)
    np.testing.assert_array_equal(found.copy_of[rows], new)
    np.testing.assert_array_equal(found.set_of[new], found.set_of[rows])
    assert np.unique(found.set_of[new]).size == 30
    assert found.flagged.sum() == 60
    assert (found.scores[found.flagged] > 0).all()


def test_equal_rows_are_found_though_the_search_missed_them() -> None:
    features = flat(200, 5)
    features[[40, 90, 150]] = features[7]
    missed = (np.arange(200)[:, None] + np.arange(1, 11)) % 200
    unit = unit_length(features)
    found = find_near_duplicates(features, Closest(missed, np.sort(distances_to(unit, unit, missed), axis=1)))
    members = np.array([7, 40, 90, 150])
    assert np.unique(found.set_of[members]).size == 1
    assert (found.scores[members] == 0).all()
    assert (found.set_of == found.set_of[7]).sum() == 4
    assert set(found.copy_of[members]) <= set(members.tolist())


def test_a_set_is_found_whole_with_more_copies_than_neighbors_are_looked_at() -> None:
    features = np.vstack([flat(300, 5), np.repeat(flat(1, 5, seed=9), 40, axis=0)])
    found = copies_in(features)
    assert np.flatnonzero(found.flagged).tolist() == list(range(300, 340))
    assert set(found.set_of[300:]) == {0}


def test_sets_are_numbered_by_their_first_rows() -> None:
    features = flat(100, 5)
    features[[50, 60]] = features[[20, 3]]
    found = copies_in(features)
    assert found.set_of[[3, 60]].tolist() == [0, 0]
    assert found.set_of[[20, 50]].tolist() == [1, 1]
    assert (np.delete(found.set_of, [3, 20, 50, 60]) == -1).all()


def test_the_same_direction_alone_makes_no_copy() -> None:
    features = flat(300, 5)
    features[0] = 3 * features[1]
    assert not copies_in(features).flagged.any()


def test_conflicts_need_two_different_labels_in_a_set() -> None:
    features = flat(100, 5)
    features[[10, 11]] = features[0]  # labels 0, 0, 1
    features[20] = features[1]  # labels 1, 1
    features[[30, 31]] = features[2]  # labels 2, none, 2
    labels = np.arange(100) % 3
    labels[[0, 10, 11, 1, 20, 2, 30, 31]] = [0, 0, 1, 1, 1, 2, -1, 2]
    assert np.flatnonzero(conflicting(copies_in(features), labels)).tolist() == [0, 10, 11]
    labels[31] = 0
    assert np.flatnonzero(conflicting(copies_in(features), labels)).tolist() == [0, 2, 10, 11, 31]


def test_results_do_not_depend_on_units_or_order() -> None:
    features = load_digits().data[:600]
    features[:20] = features[20:40] + np.random.default_rng(0).normal(scale=0.3, size=(20, 64))
    found = copies_in(features)
    np.testing.assert_allclose(copies_in(features * 1e-6).scores, found.scores, rtol=1e-5)
    order = np.random.default_rng(1).permutation(600)
    again = copies_in(features[order])
    np.testing.assert_allclose(again.scores, found.scores[order], rtol=1e-9)
    np.testing.assert_array_equal(again.flagged, found.flagged[order])


def test_data_that_is_there_twice_is_found_whole() -> None:
    features = flat(300, 8).astype(np.float32)
    found = copies_in(np.vstack([features, features]))
    assert found.flagged.all()
    np.testing.assert_array_equal(found.copy_of, (np.arange(600) + 300) % 600)


def test_two_samples_have_nothing_to_compare_with() -> None:
    assert copy_share(find_closest(np.eye(2))) == 0
    assert not copies_in(np.array([[1.0, 0.0], [1.0, 1e-9]])).flagged.any()


@settings(max_examples=60, deadline=None)
@given(odd_features)
def test_odd_data_gives_scores_between_0_and_1_and_every_equal_row(features: np.ndarray) -> None:
    found = copies_in(features)
    n = len(features)
    assert ((found.scores >= 0) & (found.scores <= 1)).all()
    np.testing.assert_array_equal(found.flagged, found.copy_of >= 0)
    np.testing.assert_array_equal(found.flagged, found.set_of >= 0)
    assert (found.scores[found.flagged] < 0.5).all()
    assert (found.copy_of != np.arange(n)).all()
    equal = (features[:, None] == features[None]).all(axis=2) & ~np.eye(n, dtype=bool)
    assert (found.scores[equal.any(axis=1)] == 0).all()
    same_set = found.set_of[:, None] == found.set_of[None]
    assert same_set[equal].all()


@settings(max_examples=60, deadline=None)
@given(odd_features)
def test_groups_are_those_of_a_comparison_of_all_pairs(features: np.ndarray) -> None:
    groups = groups_of_equal_rows(features)
    equal = (features[:, None] == features[None]).all(axis=2)
    np.testing.assert_array_equal(groups[:, None] == groups[None], equal)


def leakage(train: np.ndarray, test: np.ndarray) -> Leakage:
    return find_leakage(train, test, find_closest(train))


def halves() -> tuple[np.ndarray, np.ndarray]:
    features = load_digits().data
    return features[:1200], features[1200:].copy()


def test_two_halves_of_the_digits_do_not_leak() -> None:
    found = leakage(*halves())
    assert not found.flagged.any()


def test_planted_copies_are_found() -> None:
    train, test = halves()
    test[:10] = train[100:110]
    test[10:20] = train[200:210] + np.random.default_rng(0).normal(scale=0.3, size=(10, 64))
    found = leakage(train, test)
    leaked = np.r_[100:110, 200:210]
    assert np.flatnonzero(found.flagged).tolist() == leaked.tolist()
    np.testing.assert_array_equal(found.copy_of[leaked], np.arange(20))
    assert (found.scores[100:110] == 0).all()
    assert (found.scores[200:210] < 0.5).all()
    assert (np.delete(found.scores, leaked) >= 0.5).all()


def test_precision_does_not_hide_equal_rows() -> None:
    train, test = halves()
    test[3] = train[5]
    assert leakage(train.astype(np.float32), test).scores[5] == 0
    assert leakage(train, test.astype(np.float32)).scores[5] == 0


def test_every_copy_of_one_test_sample_is_flagged() -> None:
    train, test = halves()
    train[:30] = test[0]
    found = leakage(train, test)
    assert np.flatnonzero(found.flagged).tolist() == list(range(30))
    assert (found.copy_of[:30] == 0).all()


@settings(max_examples=50, deadline=None)
@given(st.data(), st.integers(1, 3))
def test_leakage_of_odd_data_has_scores_between_0_and_1(data: st.DataObject, width: int) -> None:
    elements = st.sampled_from([0.0, -0.0, 1.0, 2.0, -1.0, 1e-20, 1e20])
    train, test = (
        data.draw(hnp.arrays(np.float64, (data.draw(st.integers(1, 25)), width), elements=elements))
        for _ in range(2)
    )
    found = leakage(train, test)
    assert ((found.scores >= 0) & (found.scores <= 1)).all()
    equal = (train[:, None] == test[None]).all(axis=2)
    assert (found.scores[equal.any(axis=1)] == 0).all()
    assert found.flagged[equal.any(axis=1)].all()
    np.testing.assert_array_equal(found.flagged, found.copy_of >= 0)
