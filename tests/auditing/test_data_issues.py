"""Outliers: found where there are some, few false alarms; and what an audit reports besides labels."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from sklearn.datasets import load_digits

from laplaceconfidence import NoisyDataset, audit
from laplaceconfidence.auditing.closeness import Closest, find_closest
from laplaceconfidence.auditing.data_issues import Outliers, find_outliers
from laplaceconfidence.evaluation.metrics import auroc
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.graph.neighbors import find_neighbors
from laplaceconfidence.records import write_audit


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


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of samples of every neighbor search, whoever makes it."""
    made: list[int] = []
    for name, module in list(sys.modules.items()):
        found = getattr(module, "find_neighbors", None)
        if name.startswith("laplaceconfidence.") and found is find_neighbors:

            def counted(unit: np.ndarray, *args: Any, **kwargs: Any) -> Any:
                made.append(len(unit))
                return find_neighbors(unit, *args, **kwargs)

            monkeypatch.setattr(module, "find_neighbors", counted)
    return made


@pytest.mark.parametrize(
    ("estimator", "n_graphs"), [(None, 2), ("laplace", 1), ("refined-cross-entropy", 1), ("knn-vote", 1)]
)
def test_an_audit_searches_once_per_graph(
    searches: list[int], estimator: str | None, n_graphs: int, tmp_path: Path
) -> None:
    result = audit(digits(slice(0, 1200)), estimator=estimator, random_state=0)
    result.explain(0)
    write_audit(result, tmp_path / "run")
    assert searches == [1200] * n_graphs


def test_too_few_neighbors_of_the_estimator_are_searched_again(searches: list[int]) -> None:
    data = digits(slice(0, 300))
    few = audit(data, estimator="laplace", n_neighbors=5, max_iter=100).table.sort_index()
    assert searches == [300, 300]
    enough = audit(data, estimator="laplace", n_neighbors=20).table.sort_index()
    assert searches == [300, 300, 300]
    np.testing.assert_allclose(few.outlier_score, enough.outlier_score, rtol=1e-6)


def test_a_graph_of_the_caller_does_not_replace_the_search_for_outliers(searches: list[int]) -> None:
    data = digits(slice(0, 300))
    unrelated = sparse.random_array((300, 300), density=0.2, rng=0, format="csr")
    by_graph = audit(data, estimator="laplace", knn_graph=unrelated).table.sort_index()
    assert searches == [300]
    by_features = audit(data, estimator="laplace", n_neighbors=20).table.sort_index()
    np.testing.assert_allclose(by_graph.outlier_score, by_features.outlier_score, rtol=1e-6)


def test_a_second_set_must_be_comparable() -> None:
    train = digits(slice(0, 100))
    narrow = digits(slice(0, 50), features=load_digits().data[:50, :10])
    with pytest.raises(InvalidInputError, match=r"'test'.*64 features.*10 features"):
        audit(train, test=narrow)
    with pytest.raises(InvalidInputError, match=r"'test'.*NoisyDataset"):
        audit(train, test=narrow.features)
    with pytest.raises(InvalidInputError, match=r"'test'.*no features"):
        audit(train, test=NoisyDataset.from_arrays([0, 1]))
