"""The ranked table: who is in it, in which order, flagged by which rule, from which evidence."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from laplaceconfidence import LaplaceConfidence, NoisyDataset, audit, find_label_issues
from laplaceconfidence.auditing.fit_request import LEAST_PROBABILITY
from laplaceconfidence.confidence.loss_mixture import GaussianLossMixture
from laplaceconfidence.confidence.normalized_margin import NormalizedMargin
from laplaceconfidence.confidence.registry import ESTIMATORS
from laplaceconfidence.exceptions import InvalidInputError, LaplaceConfidenceWarning

COLUMNS = [
    "id",
    "given_label",
    "predicted_label",
    "predicted_probability",
    "label_score",
    "is_label_issue",
    "alternative_label",
    "alternative_probability",
]
BEYOND_LABELS = [
    "outlier_score",
    "is_outlier_issue",
    "near_duplicate_score",
    "is_near_duplicate_issue",
    "near_duplicate_of",
    "near_duplicate_of_row",
    "near_duplicate_set",
    "has_conflicting_duplicate",
]


def probabilities(n: int, n_classes: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(n_classes), size=n)


def test_the_table_ranks_the_wrong_labels_first(heaps: NoisyDataset, wrong_rows: list[int]) -> None:
    result = audit(heaps, estimator="laplace", n_neighbors=8)
    table = result.table
    others = ["is_rare_class_issue", "is_empty_issue", "row_order_score", "is_row_order_issue"]
    assert list(table.columns) == [*COLUMNS, *BEYOND_LABELS, *others, "text"]
    assert sorted(table.index[:3]) == wrong_rows
    assert table.is_label_issue.to_numpy().nonzero()[0].tolist() == [0, 1, 2]
    assert table.label_score.is_monotonic_increasing
    assert (table.id == [f"sample-{row}" for row in table.index]).all()
    assert (table.text == [f"text {row}" for row in table.index]).all()
    flagged = table[table.is_label_issue]
    assert (flagged.given_label != flagged.predicted_label).all()
    assert set(table.given_label) == {"left", "right"}
    assert result.n_issues == 3
    assert repr(result) == "AuditResult(3 of 40 labels flagged, by laplace)"


def test_scores_are_the_confidences_of_the_estimator(heaps: NoisyDataset) -> None:
    result = audit(heaps, estimator="laplace", n_neighbors=8)
    alone = LaplaceConfidence(n_neighbors=8).fit(heaps.features, heaps.labels)
    by_row = result.table.sort_index()
    np.testing.assert_allclose(by_row.label_score, alone.confidence_)
    best = alone.label_distributions_.argmax(axis=1)
    np.testing.assert_array_equal(by_row.predicted_label, np.array(["left", "right"])[best])
    np.testing.assert_allclose(by_row.predicted_probability, alone.label_distributions_.max(axis=1))
    np.testing.assert_array_equal(by_row.is_label_issue, best != heaps.labels)
    assert result.noise_rate == pytest.approx(1 - alone.confidence_.mean())


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([3, 7, None] * 8, [3, 7, None]),
        ([3.0, 7.0, np.nan] * 8, [3, 7, None]),
        (["a", "b", ""] * 8, ["a", "b", None]),
        ([True, False, None] * 8, [True, False, None]),
        (np.array([b"a", b"b", b""] * 8), ["a", "b", None]),
    ],
)
def test_missing_labels_get_a_suggestion_and_no_verdict(labels: list[object], expected: list[object]) -> None:
    features = np.eye(3)[np.arange(24) % 3] + np.eye(3)[0]
    table = find_label_issues(labels, features, n_neighbors=5).table
    missing = table[table.given_label.isna()]
    assert sorted(missing.index) == list(range(2, 24, 3))
    assert missing.label_score.isna().all()
    assert not missing.is_label_issue.any()
    assert missing.predicted_label.isin(expected[:2]).all()
    assert table.label_score.notna().sum() == 16
    assert table.label_score.iloc[-8:].isna().all()
    assert table.sort_index().given_label.dropna().tolist() == expected[:2] * 8


def test_the_given_label_wins_a_tie() -> None:
    table = find_label_issues([0, 1, 1], pred_probs=[[0.5, 0.5], [0.5, 0.5], [0.6, 0.4]]).table.sort_index()
    assert table.predicted_label.tolist() == [0, 1, 0]
    assert table.is_label_issue.tolist() == [False, False, True]


def test_equal_scores_are_ranked_by_probability_then_row() -> None:
    pred_probs = [[0.5, 0.3, 0.2], [0.4, 0.2, 0.4], [0.5, 0.3, 0.2]]
    result = find_label_issues([0, 0, 0, 1, 2], pred_probs=[*pred_probs, [0, 1, 0], [0, 0, 1]])
    assert result.table.index.tolist() == [1, 0, 2, 3, 4]


def test_a_threshold_replaces_the_rule(heaps: NoisyDataset) -> None:
    result = audit(heaps, n_neighbors=8, threshold=0.9)
    np.testing.assert_array_equal(result.table.is_label_issue, result.table.label_score < 0.9)
    assert result.settings["threshold"] == 0.9
    assert audit(heaps, n_neighbors=8, threshold=0.0).n_issues == 0


@pytest.mark.parametrize("threshold", [-0.1, 1.1, float("nan"), "high"])
def test_a_threshold_is_a_probability(heaps: NoisyDataset, threshold: object) -> None:
    with pytest.raises(InvalidInputError, match="'threshold'"):
        audit(heaps, threshold=threshold)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_can_audit(heaps: NoisyDataset, name: str) -> None:
    labels = heaps.labels.copy()
    labels[5] = -1
    data = heaps.with_labels(labels)
    by_features = ESTIMATORS[name].evidence == "features"
    pred_probs = None if by_features else probabilities(40, 2)
    result = audit(data, estimator=name, pred_probs=pred_probs, random_state=0)
    by_row = result.table.sort_index()
    assert result.estimator_name == name
    assert np.isnan(by_row.label_score[5])
    assert by_row.label_score.drop(5).between(0, 1).all()
    reported = getattr(result.estimator, "noise_rate_", 1 - by_row.label_score.mean())
    assert result.noise_rate == pytest.approx(reported)
    np.testing.assert_allclose(result.distributions.sum(axis=1), 1, rtol=1e-5)


def test_an_estimator_is_copied_and_not_fitted_itself(heaps: NoisyDataset) -> None:
    mine = LaplaceConfidence(n_neighbors=8, missing_label="left")
    result = audit(heaps, estimator=mine, random_state=7)
    assert not hasattr(mine, "confidence_")
    assert mine.random_state is None
    assert mine.missing_label == "left"
    assert result.estimator_name == "LaplaceConfidence"
    assert result.settings["random_state"] == 7
    assert result.n_issues == 3


def test_probabilities_alone_are_judged_by_their_margin() -> None:
    labels, pred_probs = np.arange(30) % 3, probabilities(30, 3)
    result = find_label_issues(labels, pred_probs=pred_probs)
    assert result.estimator_name == "normalized-margin"
    expected = NormalizedMargin().fit(pred_probs, labels).confidence_
    np.testing.assert_allclose(result.table.sort_index().label_score, expected)


def test_losses_are_those_of_the_given_labels() -> None:
    labels, pred_probs = np.arange(60) % 3, probabilities(60, 3)
    pred_probs[0] = [0, 0, 1]  # an impossible label has a finite loss all the same
    result = find_label_issues(labels, pred_probs=pred_probs, estimator="gaussian-mixture", random_state=0)
    losses = -np.log(np.maximum(pred_probs[np.arange(60), labels], LEAST_PROBABILITY))
    expected = GaussianLossMixture(random_state=0).fit(losses, labels).confidence_
    by_row = result.table.sort_index()
    np.testing.assert_allclose(by_row.label_score, expected)
    np.testing.assert_array_equal(by_row.predicted_label, pred_probs.argmax(axis=1))


def test_integer_labels_may_leave_out_classes_that_have_a_column() -> None:
    result = find_label_issues([0, 2, 0, 2], pred_probs=[[0.1, 0.8, 0.1]] * 4)
    assert result.dataset.class_names == ("0", "1", "2")
    assert result.table.predicted_label.tolist() == [1, 1, 1, 1]


def test_classes_name_the_columns_in_any_order() -> None:
    result = find_label_issues(["b", "a"], pred_probs=[[0.9, 0.1], [0.2, 0.8]], classes=["b", "a"])
    assert result.n_issues == 0
    assert result.table.sort_index().predicted_label.tolist() == ["b", "a"]


def test_probabilities_of_classes_nobody_named_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"'pred_probs'.*'classes'"):
        find_label_issues(["a", "b"], pred_probs=probabilities(2, 3))


def test_a_class_without_labels_has_no_probability(heaps: NoisyDataset) -> None:
    data = NoisyDataset.from_arrays(
        heaps.labels_as_written(), heaps.features, classes=["left", "middle", "right"]
    )
    result = audit(data, n_neighbors=8)
    assert result.distributions.shape == (40, 3)
    assert (result.distributions[:, 1] == 0).all()
    assert result.n_issues == 3
    assert result.class_summary.set_index("name").loc["middle", "n_given"] == 0


def test_a_graph_takes_the_place_of_features(heaps: NoisyDataset) -> None:
    by_features = audit(heaps, estimator="laplace", n_neighbors=8)
    graph = by_features.estimator.affinity_  # type: ignore[attr-defined]
    by_graph = find_label_issues(heaps.labels_as_written(), knn_graph=graph, estimator="laplace")
    np.testing.assert_allclose(
        by_graph.table.sort_index().label_score, by_features.table.sort_index().label_score, atol=1e-6
    )


def test_what_a_result_says_about_itself(heaps: NoisyDataset) -> None:
    result = audit(heaps, estimator="laplace", n_neighbors=8, random_state=3)
    assert result.settings["n_neighbors"] == 8
    assert result.settings["random_state"] == 3
    assert {"total", "neighbors", "solve", "ranking"} <= result.timings.keys()
    assert {"python", "laplaceconfidence", "numpy", "faiss-cpu"} <= result.versions.keys()


GRAPH = sparse.csr_array(np.ones((40, 40)))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"estimator": "magic"}, ["'estimator'", "'magic'", "'knn-vote'"]),
        ({"estimator": LaplaceConfidence}, ["'estimator'", "a name or a confidence estimator"]),
        ({"estimator": 5}, ["'estimator'", "5"]),
        ({"alpha": 0.5}, ["'alpha'", "'noise-aware'", "It is a setting of 'laplace'"]),
        ({"target_precision": 1.5}, ["'target_precision'", "below 1", "1.5"]),
        ({"target_precision": 0.9, "threshold": 0.5}, ["'target_precision'", "'threshold'"]),
        ({"target_precision": 0.9, "estimator": "laplace"}, ["'target_precision'", "'laplace'"]),
        ({"estimator": "laplace", "pred_probs": probabilities(40, 2)}, ["'pred_probs'", "'laplace'"]),
        ({"estimator": "knn-vote", "knn_graph": GRAPH}, ["'knn_graph'", "'knn-vote'"]),
        ({"estimator": "self-confidence"}, ["'pred_probs'", "given", "'self-confidence'"]),
        (
            {"estimator": "self-confidence", "pred_probs": probabilities(40, 2), "knn_graph": GRAPH},
            ["'knn_graph'", "'self-confidence'"],
        ),
        ({"estimator": "self-confidence", "pred_probs": probabilities(39, 2)}, ["'pred_probs'", "39", "40"]),
        ({"estimator": "gaussian-mixture", "pred_probs": -np.ones((40, 2))}, ["'pred_probs'", "negative"]),
        ({"estimator": "knn-vote", "alpha": 0.5}, ["'alpha'", "'knn-vote'", "n_neighbors"]),
        ({"estimator": LaplaceConfidence(), "alpha": 0.5}, ["'alpha'", "instance"]),
        ({"estimator": "laplace", "alpha": 1.5}, ["'alpha'", "1.5"]),
        ({"n_components": 3}, ["'n_components'", "3"]),
    ],
)
def test_evidence_and_settings_that_do_not_fit_are_refused(
    heaps: NoisyDataset, arguments: dict[str, object], words: list[str]
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        audit(heaps, **arguments)  # type: ignore[arg-type]
    for word in words:
        assert word in str(caught.value)


def test_features_that_the_estimator_cannot_use_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="'features'"):
        find_label_issues([0, 1], [[1], [2]], pred_probs=np.eye(2), estimator="self-confidence")


def test_labels_alone_are_not_enough() -> None:
    with pytest.raises(InvalidInputError, match="needs features"):
        find_label_issues([0, 1, 0, 1])
    images = NoisyDataset.from_arrays([0, 1], sources=["a.png", "b.png"], source_kind="image")
    with pytest.raises(InvalidInputError, match="name an 'encoder'"):
        audit(images)


def test_only_data_sets_are_audited() -> None:
    with pytest.raises(InvalidInputError, match=r"must be one of a path, a frame.*'list'"):
        audit([0, 1])


def test_errors_speak_of_features_and_labels() -> None:
    with pytest.raises(InvalidInputError, match=r"'features'.*3 equal rows"):
        find_label_issues([0, 1, 0], np.ones((3, 2)))
    with pytest.raises(InvalidInputError, match=r"'labels'.*two classes"):
        find_label_issues(["a", "a"], np.eye(2))


def test_file_names_that_are_no_text_are_shown_all_the_same() -> None:
    labels = ["caf\udce9", "tea"] * 6
    table = find_label_issues(labels, np.eye(2)[np.arange(12) % 2] + 0.1, n_neighbors=3).table
    assert set(table.given_label) == {"caf\\udce9", "tea"}


def test_the_audit_is_a_plain_function_whatever_was_imported_before() -> None:
    code = (
        "import laplaceconfidence.auditing.explain, laplaceconfidence.cli.audit.command\n"
        "import inspect, laplaceconfidence\n"
        "audit = laplaceconfidence.audit\n"
        "import laplaceconfidence.auditing.issues\n"
        "assert laplaceconfidence.audit is audit is laplaceconfidence.auditing.issues.audit\n"
        "print(inspect.isfunction(audit))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "True\n", done.stderr


def test_an_audit_asks_once_whether_minus_one_is_a_class() -> None:
    rng = np.random.default_rng(0)
    features, labels = rng.normal(size=(60, 3)), np.arange(60) % 3 - 1
    with pytest.warns(LaplaceConfidenceWarning) as given:
        audit((features, labels), random_state=0)
    assert sum("-1" in str(one.message) for one in given) == 1
