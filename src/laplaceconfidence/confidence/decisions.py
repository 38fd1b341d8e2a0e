"""Expected precision and recall of flagging labels, computed from confidences without true labels.

If a confidence is the probability that a label is right, the expected share of wrong labels below a threshold
is the mean of 1 - confidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray, to_numpy
from laplaceconfidence.validation import check_real, check_same_length, must_be


@dataclass(frozen=True, slots=True)
class ExpectedCurve:
    """Expected precision and recall of flagging the labels with a confidence below each threshold.

    Attributes
    ----------
    thresholds : ndarray of shape (m,)
        Thresholds, increasing.
    n_flagged : ndarray of shape (m,)
        Number of labels below each threshold.
    precision : ndarray of shape (m,)
        Expected share of the flagged labels that are wrong.
    recall : ndarray of shape (m,)
        Expected share of the wrong labels that are flagged, increasing.
    """

    thresholds: FloatArray
    n_flagged: IntArray
    precision: FloatArray
    recall: FloatArray


def expected_curve(confidence: Any, cautious: Any = None) -> ExpectedCurve:
    """Compute the expected precision and recall of flagging labels, one threshold per distinct confidence.

    Parameters
    ----------
    confidence : array-like of shape (n,)
        Probability that each label is right; NaN is left out.
    cautious : array-like of shape (n,) or None, default=None
        Second probabilities that the expected errors are computed from; ``confidence`` then only orders the
        labels. ``None`` uses ``confidence`` for both.

    Returns
    -------
    ExpectedCurve

    Examples
    --------
    >>> from laplaceconfidence import expected_curve
    >>> expected_curve([0.1, 0.5, 0.9]).precision.round(2)
    array([0.9, 0.7, 0.5])
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
    # Halfway to the next value, but above the value itself, which "below the threshold" must include.
    thresholds = np.maximum((values[flagged - 1] + next_values) / 2, np.nextafter(values[flagged - 1], 2))
    expected_wrong = wrong[flagged - 1]
    precision = expected_wrong / flagged
    recall = expected_wrong / wrong[-1] if wrong[-1] > 0 else np.ones(len(flagged))
    return ExpectedCurve(thresholds, flagged.astype(np.int64), precision, recall)


def threshold_for_precision(confidence: Any, precision: float, cautious: Any = None) -> float:
    """Find the largest threshold such that the labels below it are expected to be wrong at some rate.

    Parameters
    ----------
    confidence : array-like of shape (n,)
        Probability that each label is right; NaN is left out.
    precision : float
        Expected share of wrong labels among those below the threshold.
    cautious : array-like of shape (n,) or None, default=None
        As in ``expected_curve``.

    Returns
    -------
    float
        0, which flags no label, if no threshold reaches the rate.

    Examples
    --------
    >>> from laplaceconfidence import threshold_for_precision
    >>> round(threshold_for_precision([0.1, 0.5, 0.9], 0.7), 2)
    0.7
    """
    precision = check_real(precision, "precision", above=0, at_most=1)
    curve = expected_curve(confidence, cautious)
    good = np.flatnonzero(curve.precision >= precision - 1e-12)
    return float(curve.thresholds[good[-1]]) if len(good) else 0.0


def _probabilities(confidence: Any) -> FloatArray:
    values = to_numpy(confidence)
    if values.ndim != 1 or values.dtype.kind not in "fiub":
        raise must_be("confidence", "one number per sample", f"{values.dtype} of shape {values.shape}")
    values = values.astype(np.float64)
    values = values[~np.isnan(values)]
    if len(values) == 0:
        raise must_be("confidence", "at least one number", "no number that is not NaN")
    if values.min() < 0 or values.max() > 1:
        raise must_be(
            "confidence", "between 0 and 1", float(values.min() if values.min() < 0 else values.max())
        )
    return np.asarray(values)
