"""Suggestions taken, and the trail they leave."""

import numpy as np
import pytest

from laplaceconfidence import NoisyDataset, audit, find_label_issues
from laplaceconfidence.auditing.corrections import accepted_suggestions
from laplaceconfidence.exceptions import InvalidInputError


def test_flagged_labels_change_and_all_others_stay(heaps: NoisyDataset, wrong_rows: list[int]) -> None:
    result = audit(heaps, n_neighbors=8)
    corrections = result.correct()
    truth = np.repeat(["left", "right"], 20)
    assert corrections.labels.tolist() == truth.tolist()
    assert result.corrected_labels().tolist() == truth.tolist()
    assert corrections.dataset.labels_as_written().tolist() == truth.tolist()
    trail = corrections.trail
    assert len(corrections) == 3
    assert list(trail.columns) == ["id", "old_label", "new_label", "probability", "label_score"]
    assert sorted(trail.index) == wrong_rows
    assert (trail.new_label == truth[trail.index]).all()
    assert (trail.old_label != trail.new_label).all()
    assert trail.label_score.is_monotonic_increasing


def test_labels_come_back_as_they_were_written() -> None:
    labels = [10.0, 20.0, np.nan, 10.0]
    pred_probs = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]
    result = find_label_issues(labels, pred_probs=pred_probs)
    np.testing.assert_array_equal(result.corrected_labels(), [10.0, 10.0, np.nan, 10.0])
    np.testing.assert_array_equal(result.corrected_labels(fill_missing=True), [10.0, 10.0, 20.0, 10.0])
    filled = result.correct(fill_missing=True).trail
    assert filled.index.tolist() == [1, 2]
    assert np.isnan(filled.label_score[2])


def test_timid_suggestions_can_be_left_alone() -> None:
    result = find_label_issues(["a", "b", "b"], pred_probs=[[0.1, 0.9], [0.8, 0.2], [0.55, 0.45]])
    assert result.corrected_labels(min_probability=0.85).tolist() == ["b", "b", "b"]
    assert len(result.correct(min_probability=0.5)) == 3
    with pytest.raises(InvalidInputError, match="'min_probability'"):
        result.correct(min_probability=2)


def test_a_flag_without_another_class_changes_nothing() -> None:
    result = find_label_issues(
        ["a", "b"], pred_probs=[[0.6, 0.4], [0.1, 0.9]], estimator="self-confidence", threshold=0.7
    )
    assert result.n_issues == 1
    assert result.corrected_labels().tolist() == ["a", "b"]
    assert len(result.confused_pairs) == 0


def test_suggestions_are_accepted_where_flagged_different_and_probable() -> None:
    accepted = accepted_suggestions(
        flagged=np.array([True, True, True, False, False]),
        given=np.array([0, 0, 1, 0, -1]),
        suggested=np.array([1, 1, 1, 1, 1]),
        probability=np.array([0.9, 0.4, 0.9, 0.9, 0.9]),
        min_probability=0.5,
        fill_missing=True,
    )
    assert accepted.tolist() == [True, False, False, False, True]
