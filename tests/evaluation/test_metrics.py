"""The scores of a confidence, against scikit-learn, scipy and plain loops."""

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

from laplaceconfidence.evaluation.metrics import (
    auroc,
    average_precision,
    expected_calibration_error,
    f1_at,
    score_confidence,
    spearman,
)
from laplaceconfidence.exceptions import InvalidInputError


def samples_with_ties(n: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return np.round(rng.random(n), 1), np.append(rng.random(n - 2) < 0.6, [True, False])


@settings(max_examples=60, deadline=None)
@given(n=st.integers(2, 60), seed=st.integers(0, 10**6))
def test_ranking_and_threshold_scores_agree_with_scikit_learn(n: int, seed: int) -> None:
    confidence, right = samples_with_ties(n, seed)
    assert auroc(confidence, right) == pytest.approx(roc_auc_score(right, confidence))
    assert average_precision(confidence, right) == pytest.approx(average_precision_score(~right, -confidence))
    for threshold in (0.0, 0.3, 0.5, 1.0):
        called_right = confidence >= threshold
        wrong = f1_score(~right, ~called_right, zero_division=0)
        assert f1_at(confidence, right, threshold) == pytest.approx(wrong)
        assert f1_at(confidence, right, threshold, target="right") == pytest.approx(
            f1_score(right, called_right, zero_division=0)
        )


@settings(max_examples=40, deadline=None)
@given(n=st.integers(2, 60), seed=st.integers(0, 10**6), n_bins=st.integers(1, 20))
def test_calibration_error_agrees_with_a_loop_over_the_bins(n: int, seed: int, n_bins: int) -> None:
    confidence = np.append(np.random.default_rng(seed).random(n - 2), [0.0, 1.0])
    right = samples_with_ties(n, seed)[1]
    error = 0.0
    for b in range(n_bins):
        upper = (b + 1) / n_bins if b + 1 < n_bins else 2
        inside = (confidence * n_bins >= b) & (confidence * n_bins < upper * n_bins)
        if inside.any():
            error += inside.mean() * abs(confidence[inside].mean() - right[inside].mean())
    assert expected_calibration_error(confidence, right, n_bins) == pytest.approx(error)


def test_spearman_agrees_with_scipy_and_leaves_out_nan() -> None:
    rng = np.random.default_rng(0)
    a = np.round(rng.random(50), 1)
    b = a + rng.random(50)
    assert spearman(a, b) == pytest.approx(spearmanr(a, b).statistic)
    assert spearman(np.append(a, [np.nan, 5]), np.append(b, [9, np.nan])) == pytest.approx(spearman(a, b))
    assert spearman(a, a**3) == pytest.approx(1)
    assert spearman(a, -a) == pytest.approx(-1)
    assert math.isnan(spearman(a, np.ones(50)))
    assert math.isnan(spearman([np.nan, 1.0], [1.0, np.nan]))


def test_a_perfect_confidence_scores_perfectly() -> None:
    right = np.array([True, False, True, False, False])
    scores = score_confidence(right.astype(float), right)
    assert (scores.auroc, scores.average_precision, scores.f1_wrong, scores.f1_right) == (1, 1, 1, 1)
    assert scores.calibration_error == 0
    assert scores.noise_rate == pytest.approx(0.6)
    assert scores.mean_confidence == pytest.approx(0.4)


def test_samples_without_a_confidence_are_left_out() -> None:
    confidence, right = samples_with_ties(40, 1)
    with_gaps = np.insert(confidence, [0, 7, 40], np.nan)
    truth = np.insert(right, [0, 7, 40], [True, False, True])
    assert score_confidence(with_gaps, truth) == score_confidence(confidence, right)
    assert score_confidence(with_gaps, truth).n_samples == 40


def test_what_the_samples_cannot_define_is_nan_and_none_in_json() -> None:
    scores = score_confidence([0.9, 0.8], [True, True])
    assert math.isnan(scores.auroc)
    assert math.isnan(scores.average_precision)
    assert math.isnan(scores.f1_wrong)
    assert scores.f1_right == 1
    content = scores.as_dict()
    assert content["auroc"] is None
    assert json.loads(json.dumps(content, allow_nan=False))["n_samples"] == 2


def test_ranks_need_no_scale() -> None:
    confidence, right = samples_with_ties(40, 2)
    assert auroc(confidence * 7 - 3, right) == pytest.approx(auroc(confidence, right))
    assert average_precision(confidence * 7 - 3, right) == pytest.approx(average_precision(confidence, right))


@pytest.mark.parametrize(
    ("confidence", "right", "message"),
    [
        ([0.5, 0.5], [True], "'confidence' has 2, 'is_right' has 1"),
        ([0.5], [1], "'is_right'.*boolean"),
        ([[0.5]], [True], "'confidence'.*shape"),
        (["a"], [True], "'confidence'"),
        ([np.nan], [True], "all of them NaN"),
        ([1.5], [True], "between 0 and 1.*1.5"),
        ([np.inf], [True], "between 0 and 1"),
    ],
)
def test_bad_input_is_named(confidence: Any, right: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        score_confidence(confidence, right)


def test_bad_settings_are_named() -> None:
    with pytest.raises(InvalidInputError, match="threshold"):
        f1_at([0.5], [True], 1.5)
    with pytest.raises(InvalidInputError, match="target"):
        f1_at([0.5], [True], target="both")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="n_bins"):
        expected_calibration_error([0.5], [True], n_bins=0)
