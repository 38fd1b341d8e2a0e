"""From calibrated confidences to decisions, without any truth.

If a confidence is the probability that a label is right, the labels below a cut are expected to be wrong at
the mean of 1 - confidence. Everything here follows from that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray, to_numpy
from laplaceconfidence.validation import check_real, check_same_length, must_be


@dataclass(frozen=True, slots=True)
class ExpectedCurve:
    """What to expect of flagging every label with a confidence below each threshold."""

    thresholds: FloatArray  # (m,) rising
    n_flagged: IntArray  # (m,)
    precision: FloatArray  # (m,) share of the flagged that are wrong
    recall: FloatArray  # (m,) share of the wrong that are flagged; rises


def expected_curve(confidence: Any, cautious: Any = None) -> ExpectedCurve:
    """Expected precision and recall at every distinct confidence; missing ones (NaN) are left out.

    ``cautious`` is a second probability that each label is right, to count with where the first one ranks.
    """
    values = _probabilities(confidence)
    order = np.argsort(values, kind="stable")
    right = values if cautious is None else _probabilities(cautious)
    check_same_length("confidence", len(values), "cautious", len(right))
    values, right = values[order], right[order]
    wrong = np.cumsum(1 - right)
    last_of_its_value = np.append(values[1:] > values[:-1], True)
    flagged = np.flatnonzero(last_of_its_value) + 1
    next_values = np.append(values, 1.0 + np.finfo(np.float64).eps)[flagged]
    # Halfway to the next value, but never onto the value itself: "below the threshold" must flag it.
    thresholds = np.maximum((values[flagged - 1] + next_values) / 2, np.nextafter(values[flagged - 1], 2))
    expected_wrong = wrong[flagged - 1]
    precision = expected_wrong / flagged
    recall = expected_wrong / wrong[-1] if wrong[-1] > 0 else np.ones(len(flagged))
    return ExpectedCurve(thresholds, flagged.astype(np.int64), precision, recall)


def threshold_for_precision(confidence: Any, precision: float, cautious: Any = None) -> float:
    """The largest threshold below which labels are expected to be wrong at this rate; 0 flags none."""
    precision = check_real(precision, "precision", above=0, at_most=1)
    curve = expected_curve(confidence, cautious)
    good = np.flatnonzero(curve.precision >= precision - 1e-12)
    return float(curve.thresholds[good[-1]]) if len(good) else 0.0


def _probabilities(confidence: Any) -> FloatArray:
    values = to_numpy(confidence)
    if values.ndim != 1 or values.dtype.kind not in "fiub":
        raise must_be("confidence", "one number a sample", f"{values.dtype} of shape {values.shape}")
    values = values.astype(np.float64)
    values = values[~np.isnan(values)]
    if len(values) == 0:
        raise must_be("confidence", "at least one number", "no number that is not NaN")
    if values.min() < 0 or values.max() > 1:
        raise must_be(
            "confidence", "between 0 and 1", float(values.min() if values.min() < 0 else values.max())
        )
    return np.asarray(values)
