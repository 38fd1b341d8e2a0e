"""AnnotatorConfidence on simulated annotators of real digits, and on bad input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from laplaceconfidence import AnnotatorConfidence, AnnotatorLabels, NoiseAwareConfidence, load_digits
from laplaceconfidence.exceptions import InvalidInputError, LaplaceConfidenceWarning

N = 600


@pytest.fixture(scope="module")
def digits():
    data = load_digits()
    return data.features[:N], data.labels[:N]


def labels_of(truth, accuracy, rng, share=1.0):
    """One column of labels, None where the annotator gave none."""
    wrong = (truth + rng.integers(1, 10, len(truth))) % 10
    column = np.where(rng.random(len(truth)) < accuracy, truth, wrong).astype(object)
    column[rng.random(len(truth)) >= share] = None
    return column


@pytest.fixture(scope="module")
def table(digits):
    rng = np.random.default_rng(0)
    accuracies = (0.9, 0.6, 0.6, 0.1)
    return np.stack([labels_of(digits[1], accuracy, rng, share=0.8) for accuracy in accuracies], axis=1)


@pytest.fixture(scope="module")
def fitted(digits, table):
    return AnnotatorConfidence().fit(digits[0], table)


def majority(table):
    return np.array(
        [pd.Series([v for v in row if v is not None] or [0]).mode()[0] for row in table], dtype=np.int64
    )


def test_consensus_is_better_than_the_majority_vote(fitted, digits, table):
    by_vote = (majority(table) == digits[1]).mean()
    assert (fitted.transduction_ == digits[1]).mean() > max(0.97, by_vote + 0.1)


def test_features_improve_the_consensus(fitted, digits, table):
    without = AnnotatorConfidence().fit(None, table)
    assert (without.transduction_ == digits[1]).mean() < (fitted.transduction_ == digits[1]).mean()
    assert without.label_distributions_.shape == (N, 10)


def test_accuracies_are_close_to_the_true_ones(fitted, digits, table):
    given = table != None  # noqa: E711  (elementwise)
    true = [(table[given[:, a], a] == digits[1][given[:, a]]).mean() for a in range(4)]
    found = fitted.annotators_
    assert_allclose(found["accuracy"], true, atol=0.03)
    assert (found["accuracy_low"] <= true).all()
    assert (found["accuracy_high"] >= true).all()


def test_confidence_has_the_shape_of_the_labels(fitted, digits, table):
    assert fitted.confidence_.shape == table.shape
    assert_array_equal(np.isnan(fitted.confidence_), table == None)  # noqa: E711  (elementwise)
    right = (table == digits[1][:, None])[~np.isnan(fitted.confidence_)]
    given = fitted.confidence_[~np.isnan(fitted.confidence_)]
    assert given[right].mean() > 0.9
    assert given[~right].mean() < 0.1
    assert abs(fitted.noise_rate_ - (1 - right.mean())) < 0.03


def test_a_confused_pair_is_named(digits):
    rng = np.random.default_rng(1)
    confuser = digits[1].astype(object)
    confuser[(digits[1] == 3) & (rng.random(N) < 0.8)] = 8
    others = [labels_of(digits[1], 0.8, rng) for _ in range(3)]
    found = AnnotatorConfidence().fit(digits[0], np.stack([confuser, *others], axis=1)).annotators_
    assert (found["true_class"][0], found["confused_with"][0]) == (3, 8)
    assert found["confused_share"][0] > 0.6


def test_someone_who_is_otherwise_always_right_is_not_believed_against_the_features(digits):
    rng = np.random.default_rng(4)
    confuser = digits[1].astype(object)
    confuser[(digits[1] == 3) & (rng.random(N) < 0.8)] = 8
    table = np.stack([labels_of(digits[1], 0.9, rng), confuser, labels_of(digits[1], 0.1, rng)], axis=1)
    table[rng.random(table.shape) > 0.8] = None
    found = AnnotatorConfidence().fit(digits[0], table)
    assert (found.annotators_["true_class"][1], found.annotators_["confused_with"][1]) == (3, 8)
    assert (found.transduction_ == digits[1])[digits[1] == 3].mean() > 0.9


def test_one_annotator_is_the_noise_aware_estimator(digits):
    column = labels_of(digits[1], 0.7, np.random.default_rng(2), share=0.9)
    one = AnnotatorConfidence().fit(digits[0], column[:, None])
    same = NoiseAwareConfidence().fit(digits[0], column)
    assert_array_equal(one.confidence_[:, 0], same.confidence_)
    assert_array_equal(one.label_distributions_, same.label_distributions_)
    assert_allclose(one.annotators_["accuracy"], 1 - same.noise_rate_)
    assert one.labels_to_ask().empty


def test_a_long_table_is_the_same_as_columns(fitted, digits, table):
    rows, columns = np.nonzero(table != None)  # noqa: E711  (elementwise)
    long = AnnotatorLabels.from_table(rows, columns, table[rows, columns], sample_ids=np.arange(N))
    other = AnnotatorConfidence().fit(digits[0], long)
    assert_allclose(other.label_distributions_, fitted.label_distributions_, atol=1e-5)
    assert other.confidence_.shape == (len(rows),)
    assert_allclose(other.confidence_, fitted.confidence_[rows, columns], atol=1e-5)


def test_a_copy_is_named_and_not_counted(fitted, digits, table):
    doubled = np.concatenate([table, table[:, [1]]], axis=1)
    other = AnnotatorConfidence().fit(digits[0], doubled)
    assert other.annotators_["copies"].tolist() == [None, None, None, None, 1]
    assert_allclose(other.label_distributions_, fitted.label_distributions_, atol=1e-6)
    assert_allclose(other.confidence_[:, 4], fitted.confidence_[:, 1], atol=1e-6)


def test_annotators_who_are_nearly_always_right_do_not_copy(digits):
    both = np.stack([digits[1], digits[1]], axis=1)
    assert AnnotatorConfidence().fit(digits[0], both).annotators_["copies"].isna().all()


def test_verified_classes_are_certain(digits, table):
    found = AnnotatorConfidence().fit(digits[0], table, audited={0: 7})
    assert found.transduction_[0] == 7
    assert found.label_distributions_[0, 7] == 1


def test_the_next_question_goes_to_someone_good_about_something_uncertain(fitted, table):
    asked = fitted.labels_to_ask(10)
    assert len(asked) == 10
    assert asked["gain"].is_monotonic_decreasing
    assert (asked["gain"] > 0).all()
    assert all(table[row, who] is None for row, who in zip(asked["sample"], asked["annotator"], strict=True))
    assert 3 not in set(asked["annotator"])  # the one who guesses
    certainty = fitted.label_distributions_.max(axis=1)
    assert certainty[asked["sample"]].mean() < np.median(certainty)


def test_new_samples_are_predicted(fitted):
    rest = load_digits()
    assert (fitted.predict(rest.features[N : N + 300]) == rest.labels[N : N + 300]).mean() > 0.85


def test_predicted_probabilities_are_further_evidence(digits, table):
    probabilities = np.full((N, 10), 0.02)
    probabilities[np.arange(N), digits[1]] = 0.82
    with_them = AnnotatorConfidence().fit(None, table, pred_probs=probabilities)
    assert (with_them.transduction_ == digits[1]).mean() > 0.98
    assert with_them.predict_proba(None, pred_probs=probabilities[:5]).shape == (5, 10)


def test_samples_without_any_label_get_a_class_from_the_features(digits, table):
    gaps = table.copy()
    gaps[:50] = None
    found = AnnotatorConfidence().fit(digits[0], gaps)
    assert (found.transduction_[:50] == digits[1][:50]).mean() > 0.9


def test_annotators_of_one_label_and_names_of_every_script(digits):
    rng = np.random.default_rng(3)
    names = [f"注釈者{k} مُعَلِّق {k}" for k in range(2_000)]
    samples = rng.integers(0, N, 2_000)
    labels = np.where(rng.random(2_000) < 0.8, digits[1][samples], rng.integers(0, 10, 2_000))
    long = AnnotatorLabels.from_table(samples, names, labels, sample_ids=np.arange(N))
    found = AnnotatorConfidence().fit(digits[0], long)
    assert found.annotators_["annotator"].tolist() == names
    assert (found.transduction_ == digits[1]).mean() > 0.9


def test_annotators_who_never_overlap_without_features_are_said_to_be_unidentified(digits):
    table = np.full((N, 2), None, dtype=object)
    table[: N // 2, 0] = digits[1][: N // 2]
    table[N // 2 :, 1] = digits[1][N // 2 :]
    with pytest.warns(LaplaceConfidenceWarning, match="two annotators"):
        found = AnnotatorConfidence().fit(None, table)
    assert not found.identifiable_
    assert found.noise_rate_bracket_[0] == 0


def test_the_same_seed_gives_the_same_result(fitted, digits, table):
    again = AnnotatorConfidence().fit(digits[0], table)
    assert_array_equal(again.confidence_, fitted.confidence_)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([["a", "b"], ["a"]], "equal length"),
        ([[None, None], [None, None]], "at least one label"),
        ([["a", "a"], ["a", None]], "at least two classes"),
        (["a", "b", "a"], "column per annotator"),
        (None, "column per annotator"),
    ],
)
def test_bad_labels_get_a_clear_error(y, message):
    with pytest.raises(InvalidInputError, match=message):
        AnnotatorConfidence().fit(None, y)


def test_other_lengths_and_unknown_names_get_a_clear_error(fitted, digits, table):
    with pytest.raises(InvalidInputError, match="600"):
        AnnotatorConfidence().fit(digits[0][:10], table)
    with pytest.raises(InvalidInputError, match="annotator"):
        fitted.annotator_matrix("nobody")
    with pytest.raises(InvalidInputError, match="repeated"):
        AnnotatorLabels.from_table([1], ["a"], ["x"], sample_ids=[1, 1])
    with pytest.raises(InvalidInputError, match="sample_ids"):
        AnnotatorLabels.from_table([2], ["a"], ["x"], sample_ids=[1])
    with pytest.raises(InvalidInputError, match="sample_weight"):
        AnnotatorConfidence().fit(digits[0], table, sample_weight=np.ones(N))


def test_gaps_written_as_minus_one_are_asked_about(digits, table):
    gaps = np.where(table == None, -1, table).astype(np.int64)  # noqa: E711  (elementwise)
    with pytest.warns(LaplaceConfidenceWarning, match="Pass missing_label=-1"):
        assert -1 in AnnotatorConfidence().fit(None, gaps).classes_
    stated = AnnotatorConfidence(missing_label=-1).fit(None, gaps)
    assert_array_equal(stated.transduction_, AnnotatorConfidence().fit(None, table).transduction_)
