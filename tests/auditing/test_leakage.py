"""Samples of one set in another; and the columns that an audit makes of all that is beyond labels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.datasets import load_digits

from laplaceconfidence import NoisyDataset, audit
from laplaceconfidence.auditing.closeness import find_closest
from laplaceconfidence.auditing.data_issues import neighbors_of
from laplaceconfidence.auditing.leakage import Leakage, find_leakage
from laplaceconfidence.confidence.laplace import LaplaceConfidence
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.stages import observing


def leakage(train: np.ndarray, test: np.ndarray) -> Leakage:
    return find_leakage(train, test, find_closest(train))


def halves() -> tuple[np.ndarray, np.ndarray]:
    features = load_digits().data
    return features[:1200], features[1200:].copy()


def test_two_halves_of_the_digits_do_not_leak() -> None:
    found = leakage(*halves())
    assert not found.flagged.any()
    assert (found.other_copy_of == -1).all()


def test_planted_copies_are_found_on_both_sides() -> None:
    train, test = halves()
    test[:10] = train[100:110]
    test[10:20] = train[200:210] + np.random.default_rng(0).normal(scale=0.3, size=(10, 64))
    found = leakage(train, test)
    leaked = np.r_[100:110, 200:210]
    assert np.flatnonzero(found.flagged).tolist() == leaked.tolist()
    np.testing.assert_array_equal(found.copy_of[leaked], np.arange(20))
    np.testing.assert_array_equal(found.other_copy_of[:20], leaked)
    assert (found.other_copy_of[20:] == -1).all()
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
def test_odd_data_gives_scores_between_0_and_1(data: st.DataObject, width: int) -> None:
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
    assert (found.other_copy_of[equal.any(axis=0)] >= 0).all()
    np.testing.assert_array_equal(found.flagged, found.copy_of >= 0)


def digits(rows: slice, **changes: np.ndarray) -> NoisyDataset:
    features, labels = load_digits(return_X_y=True)
    ids = [f"digit-{row}" for row in range(len(labels))][rows]
    return NoisyDataset.from_arrays(labels[rows], changes.get("features", features[rows]), ids=ids)


def test_an_audit_has_columns_for_outliers_copies_and_leaks() -> None:
    features = load_digits().data[:1200].copy()
    features[0] = np.random.default_rng(0).uniform(0, 16, 64)
    features[11] = features[10]
    features[23] = features[13]  # two digits of the same class
    features[40] = load_digits().data[1300]
    train, test = digits(slice(0, 1200), features=features), digits(slice(1200, None))
    table = audit(train, test=test).table.sort_index()
    assert table.is_outlier_issue[0]
    assert table.outlier_score[0] == table.outlier_score.min()
    assert table.near_duplicate_of[[10, 11, 13, 23]].tolist() == [
        "digit-11",
        "digit-10",
        "digit-23",
        "digit-13",
    ]
    assert table.near_duplicate_set[[10, 11, 13, 23]].tolist() == [0, 0, 1, 1]
    assert table.near_duplicate_set.isna().sum() == 1196
    assert np.flatnonzero(table.is_near_duplicate_issue).tolist() == [10, 11, 13, 23]
    labels = train.labels
    assert labels[10] != labels[11]
    assert labels[13] == labels[23]
    assert np.flatnonzero(table.has_conflicting_duplicate).tolist() == [10, 11]
    assert np.flatnonzero(table.is_leaked).tolist() == [40]
    assert table.leaked_from[40] == "digit-1300"
    assert table.leakage_score[40] == 0
    assert table.leaked_from.isna().sum() == 1199


def test_without_a_second_set_nothing_is_said_of_leaks_and_without_features_nothing_at_all() -> None:
    table = audit(digits(slice(0, 300))).table
    assert "outlier_score" in table
    assert "is_leaked" not in table
    labels = np.arange(30) % 3
    probabilities = np.full((30, 3), 0.1) + 0.7 * np.eye(3)[labels]
    assert "outlier_score" not in audit(NoisyDataset.from_arrays(labels), pred_probs=probabilities).table


class Stages:
    def __init__(self) -> None:
        self.names: list[str] = []

    def started(self, name: str, total: int | None) -> None:
        self.names.append(name)

    def advanced(self, name: str, amount: int) -> None: ...
    def finished(self, name: str, seconds: float) -> None: ...


@pytest.mark.parametrize("estimator", ["laplace", "refined-cross-entropy"])
def test_the_neighbors_of_the_estimator_are_not_searched_again(estimator: str) -> None:
    told = Stages()
    with observing(told):
        audit(digits(slice(0, 500)), estimator=estimator, random_state=0)
    assert told.names.count("neighbors") == 1


def test_too_few_neighbors_of_the_estimator_are_not_used() -> None:
    data = digits(slice(0, 300))
    few = LaplaceConfidence(n_neighbors=5, max_iter=100).fit(data.features, data.labels)
    assert neighbors_of(few) is None
    reduced = LaplaceConfidence(n_components=8).fit(data.features, data.labels)
    candidates = neighbors_of(reduced)
    assert candidates is not None
    assert candidates.shape == (300, 20)
    table = audit(data, estimator="laplace", n_neighbors=5, max_iter=100).table.sort_index()
    np.testing.assert_allclose(table.outlier_score, audit(data).table.sort_index().outlier_score)


def test_a_second_set_must_be_comparable() -> None:
    train = digits(slice(0, 100))
    narrow = digits(slice(0, 50), features=load_digits().data[:50, :10])
    with pytest.raises(InvalidInputError, match=r"'test'.*64 features.*10 features"):
        audit(train, test=narrow)
    with pytest.raises(InvalidInputError, match=r"'test'.*NoisyDataset"):
        audit(train, test=narrow.features)
    with pytest.raises(InvalidInputError, match=r"'test'.*no features"):
        audit(train, test=NoisyDataset.from_arrays([0, 1]))
