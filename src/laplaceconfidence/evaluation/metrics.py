"""How good a confidence is, where it is known which labels are right.

Every function takes confidences (n,) and the truth ``is_right`` (n,), and leaves out the samples whose
confidence is NaN, those without a given label. A score that the samples cannot define, such as the AUROC when
no label is wrong, is NaN.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from laplaceconfidence.arrays import BoolArray, to_numpy
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
    """The scores of one confidence estimator on samples whose right labels are known."""

    n_samples: int  # those that had a label, and so a confidence
    noise_rate: float  # share of wrong labels among them
    mean_confidence: float  # 1 - noise_rate for an estimator that is calibrated overall
    auroc: float
    average_precision: float
    f1_wrong: float
    f1_right: float
    calibration_error: float

    def as_dict(self) -> dict[str, int | float | None]:
        """The scores by name, ready for JSON: ``None`` where one is not defined."""
        return {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in asdict(self).items()
        }


def score_confidence(
    confidence: Any, is_right: Any, *, threshold: float = 0.5, n_bins: int = 15
) -> ConfidenceScores:
    """All scores of one confidence against the truth."""
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
    """Probability that a right label has a higher confidence than a wrong one; a tie counts one half."""
    scores, right = _scored(confidence, is_right)
    n_right = int(right.sum())
    n_wrong = len(right) - n_right
    if n_right == 0 or n_wrong == 0:
        return math.nan
    rank_sum = float(rankdata(scores)[right].sum())
    return (rank_sum - n_right * (n_right + 1) / 2) / (n_right * n_wrong)


def average_precision(confidence: Any, is_right: Any) -> float:
    """Average precision of finding the wrong labels by looking at the least trusted first."""
    scores, right = _scored(confidence, is_right)
    n_wrong = int((~right).sum())
    if n_wrong == 0:
        return math.nan
    order = np.argsort(scores, kind="stable")
    found = np.cumsum(~right[order])
    # Samples of equal confidence are looked at together: only the last of each such group is a cut.
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
    """F1 of calling a label wrong when its confidence is below ``threshold``, and right otherwise.

    ``target`` is what is to be found: the wrong labels of an audit, or the right ones that training keeps.
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
    """Mean distance between confidence and share of right labels over ``n_bins`` equal parts of [0, 1]."""
    scores, right = _scored(confidence, is_right)
    _check_probabilities(scores)
    n_bins = check_integer(n_bins, "n_bins", minimum=1)
    bins = np.minimum((scores * n_bins).astype(np.int64), n_bins - 1)  # a confidence of 1 is in the last
    excess = np.bincount(bins, weights=scores - right, minlength=n_bins)
    return float(np.abs(excess).sum() / len(scores))


def spearman(first: Any, second: Any) -> float:
    """Rank correlation of two confidences; samples where either is NaN are left out."""
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
    """Confidences and truth of the samples that have a confidence."""
    scores = _vector(confidence, "confidence")
    right = to_numpy(is_right)
    if right.ndim != 1 or right.dtype.kind != "b":
        raise must_be(
            "is_right",
            "one boolean a sample",
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
    """Ranks need no scale; what compares a confidence with a share or a threshold does."""
    outside = scores[(scores < 0) | (scores > 1)]
    if len(outside):
        raise must_be("confidence", "between 0 and 1", float(outside[0]))


def _vector(values: Any, parameter: str) -> DoubleArray:
    array = to_numpy(values)
    if array.ndim != 1 or array.dtype.kind not in "fiub":
        raise must_be(parameter, "one number a sample", f"{array.dtype} of shape {array.shape}")
    return array.astype(np.float64)
