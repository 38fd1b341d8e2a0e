"""Metrics of confidences for data whose right labels are known.

Samples whose confidence is NaN, which have no given label, are left out. A metric that is not defined, such
as the AUROC if no label is wrong, is NaN.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from laplaceconfidence.arrays import BoolArray, to_numpy
from laplaceconfidence.confidence.calibration import calibration_bins
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.validation import (
    check_choice,
    check_integer,
    check_real,
    check_same_length,
    must_be,
)

DoubleArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ConfidenceScores:
    """The metrics of one confidence estimator.

    Parameters
    ----------
    n_samples : int
        Number of samples with a confidence.
    noise_rate : float
        Share of wrong labels among them.
    mean_confidence : float
        Equals 1 - noise_rate if the estimator is calibrated on average.
    auroc : float
        See ``auroc``.
    average_precision : float
        See ``average_precision``.
    f1_wrong, f1_right : float
        See ``f1_at``.
    calibration_error : float
        See ``expected_calibration_error``.
    """

    n_samples: int
    noise_rate: float
    mean_confidence: float
    auroc: float
    average_precision: float
    f1_wrong: float
    f1_right: float
    calibration_error: float

    def as_dict(self) -> dict[str, int | float | None]:
        """The metrics by name, with ``None`` in place of NaN, for JSON."""
        return {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in asdict(self).items()
        }


def score_confidence(
    confidence: Any, is_right: Any, *, threshold: float = 0.5, n_bins: int = 15
) -> ConfidenceScores:
    """Compute all metrics.

    Parameters
    ----------
    confidence : array-like of shape (n,)
        Confidences; samples with NaN are left out.
    is_right : array-like of bool of shape (n,)
        Whether each label is right.
    threshold : float, default=0.5
        Labels with a lower confidence are called wrong.
    n_bins : int, default=15
        Number of bins of the calibration error.

    Returns
    -------
    ConfidenceScores
    """
    scores, right = _scored(confidence, is_right)
    return ConfidenceScores(
        n_samples=len(scores),
        noise_rate=1.0 - float(right.mean()),
        mean_confidence=float(scores.mean()),
        auroc=auroc(scores, right),
        average_precision=average_precision(scores, right),
        f1_wrong=f1_at(scores, right, threshold, target="wrong"),
        f1_right=f1_at(scores, right, threshold, target="right"),
        calibration_error=expected_calibration_error(scores, right, n_bins),
    )


def auroc(confidence: Any, is_right: Any) -> float:
    """Probability that a right label has a higher confidence than a wrong one; a tie counts one half.

    Parameters
    ----------
    confidence : array-like of shape (n,)
        Confidences; samples with NaN are left out.
    is_right : array-like of bool of shape (n,)
        Whether each label is right.

    Returns
    -------
    float
    """
    scores, right = _scored(confidence, is_right)
    n_right = int(right.sum())
    n_wrong = len(right) - n_right
    if n_right == 0 or n_wrong == 0:
        return math.nan
    rank_sum = float(rankdata(scores)[right].sum())
    return (rank_sum - n_right * (n_right + 1) / 2) / (n_right * n_wrong)


def average_precision(confidence: Any, is_right: Any) -> float:
    """Average precision of finding the wrong labels in order of increasing confidence.

    Parameters
    ----------
    confidence : array-like of shape (n,)
        Confidences; samples with NaN are left out.
    is_right : array-like of bool of shape (n,)
        Whether each label is right.

    Returns
    -------
    float
    """
    scores, right = _scored(confidence, is_right)
    n_wrong = int((~right).sum())
    if n_wrong == 0:
        return math.nan
    order = np.argsort(scores, kind="stable")
    found = np.cumsum(~right[order])
    # Samples of equal confidence are not ordered: only the last of each such group is a cut.
    last_of_tie = np.append(np.diff(scores[order]) > 0, True)
    found = found[last_of_tie]
    precision = found / (np.flatnonzero(last_of_tie) + 1)
    return float(np.sum(np.diff(found, prepend=0) * precision) / n_wrong)


def f1_at(
    confidence: Any,
    is_right: Any,
    threshold: float = 0.5,
    *,
    target: Literal["wrong", "right"] = "wrong",
) -> float:
    """F1 score of calling a label wrong if its confidence is below ``threshold``, and right otherwise.

    Parameters
    ----------
    confidence : array-like of shape (n,)
        Confidences; samples with NaN are left out.
    is_right : array-like of bool of shape (n,)
        Whether each label is right.
    threshold : float, default=0.5
        The threshold.
    target : {"wrong", "right"}, default="wrong"
        Which labels are to be found.

    Returns
    -------
    float
    """
    scores, right = _scored(confidence, is_right)
    _check_probabilities(scores)
    threshold = check_real(threshold, "threshold", at_least=0, at_most=1)
    check_choice(target, "target", ("wrong", "right"))
    called = scores < threshold if target == "wrong" else scores >= threshold
    actual = ~right if target == "wrong" else right
    n_called_or_actual = int(called.sum()) + int(actual.sum())
    return math.nan if n_called_or_actual == 0 else 2 * int((called & actual).sum()) / n_called_or_actual


def expected_calibration_error(confidence: Any, is_right: Any, n_bins: int = 15) -> float:
    """Mean distance between confidence and share of right labels over equal bins of [0, 1].

    Parameters
    ----------
    confidence : array-like of shape (n,)
        Confidences; samples with NaN are left out.
    is_right : array-like of bool of shape (n,)
        Whether each label is right.
    n_bins : int, default=15
        Number of bins.

    Returns
    -------
    float
    """
    scores, right = _scored(confidence, is_right)
    _check_probabilities(scores)
    n_bins = check_integer(n_bins, "n_bins", minimum=1)
    counts, mean, accuracy = calibration_bins(scores, right, n_bins)
    return float((counts * np.abs(mean - accuracy)).sum() / len(scores))


def spearman(first: Any, second: Any) -> float:
    """Rank correlation of two confidences; samples where either is NaN are left out.

    Parameters
    ----------
    first, second : array-like of shape (n,)
        Confidences of the same samples.

    Returns
    -------
    float
    """
    a, b = _vector(first, "first"), _vector(second, "second")
    check_same_length("first", len(a), "second", len(b))
    both = ~(np.isnan(a) | np.isnan(b))
    if both.sum() < 2:
        return math.nan
    ranks_a, ranks_b = rankdata(a[both]), rankdata(b[both])
    ranks_a, ranks_b = ranks_a - ranks_a.mean(), ranks_b - ranks_b.mean()
    scale = math.sqrt(float(ranks_a @ ranks_a) * float(ranks_b @ ranks_b))
    return math.nan if scale == 0 else float(ranks_a @ ranks_b) / scale


def _scored(confidence: Any, is_right: Any) -> tuple[DoubleArray, BoolArray]:
    """Select the samples that have a confidence."""
    scores = _vector(confidence, "confidence")
    right = to_numpy(is_right)
    if right.ndim != 1 or right.dtype.kind != "b":
        raise must_be(
            "is_right",
            "one boolean per sample",
            f"{right.dtype} of shape {right.shape}",
            "Pass labels == true_labels.",
        )
    check_same_length("confidence", len(scores), "is_right", len(right))
    given = ~np.isnan(scores)
    if not given.any():
        raise InvalidInputError(
            f"'confidence' must hold at least one value that is not NaN. Got {len(scores)} values, all of "
            "them NaN."
        )
    return scores[given], right[given]


def _check_probabilities(scores: DoubleArray) -> None:
    """Check the range, which matters for metrics that do not depend on the ranking only."""
    outside = scores[(scores < 0) | (scores > 1)]
    if len(outside):
        raise must_be("confidence", "between 0 and 1", float(outside[0]))


def _vector(values: Any, parameter: str) -> DoubleArray:
    array = to_numpy(values)
    if array.ndim != 1 or array.dtype.kind not in "fiub":
        raise must_be(parameter, "one number per sample", f"{array.dtype} of shape {array.shape}")
    return array.astype(np.float64)
