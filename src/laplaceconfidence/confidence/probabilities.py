"""Class probabilities as the evidence of an estimator."""

from __future__ import annotations

from typing import Any

import numpy as np

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.confidence.inputs import check_given_labels
from laplaceconfidence.data.labels import EncodedLabels
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.validation import check_features

ROUNDING = 1e-3  # how far a row may sum from 1: half precision adds up no better


def check_probabilities(
    X: Any, y: Any, *, classes: Any, missing_label: object
) -> tuple[FloatArray, EncodedLabels]:
    """Class probabilities (n, C), rows summing to 1, and the given labels as codes of their columns."""
    probabilities = check_features(X, "X").astype(np.float64)
    n_samples, n_columns = probabilities.shape
    given = check_given_labels(y, n_samples, missing_label=missing_label, classes=classes)
    n_classes = len(given.class_values)
    if n_columns != n_classes:
        source = "'y' holds" if classes is None else "'classes' names"
        raise InvalidInputError(
            f"The 'X' parameter must have one column of probabilities a class, in the order of the sorted "
            f"classes. Got shape {probabilities.shape}, where {source} {n_classes} classes. "
            "Name the class of every column with the 'classes' parameter."
        )
    if (rows := np.flatnonzero((probabilities < 0).any(axis=1))).size:
        raise InvalidInputError(
            f"The 'X' parameter must be class probabilities, none of them negative. Got shape "
            f"{probabilities.shape} with {len(rows)} such rows; the first is row {rows[0]}, with "
            f"{probabilities[rows[0]].min():g}. Apply a softmax to logits first."
        )
    sums = probabilities.sum(axis=1)
    if (rows := np.flatnonzero(np.abs(sums - 1) > ROUNDING)).size:
        raise InvalidInputError(
            f"The 'X' parameter must be class probabilities, every row summing to 1. Got shape "
            f"{probabilities.shape} with {len(rows)} rows that do not; the first is row {rows[0]}, with the "
            f"sum {sums[rows[0]]:g}. Apply a softmax to logits first."
        )
    return probabilities / sums[:, None], given
