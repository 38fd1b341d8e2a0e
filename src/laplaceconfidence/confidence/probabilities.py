"""Checks of class probabilities, with the same rule and message for all parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.confidence.inputs import check_given_labels
from laplaceconfidence.data.labels import EncodedLabels
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.validation import check_features, check_same_length

ROUNDING = 1e-3  # largest difference of a row sum from 1; half precision is not more accurate


def check_class_probabilities(
    values: Any, n_classes: int, parameter: str, *, classes_from: str = "there are"
) -> FloatArray:
    """Check class probabilities, and divide every row by its sum.

    Parameters
    ----------
    values : array-like of shape (n, n_classes)
        Probabilities, one row per sample and one column per class; rows may be off by rounding.
    n_classes : int
        Number of classes.
    parameter : str
        Name of the parameter in error messages.
    classes_from : str, default="there are"
        Where the number of classes comes from, for error messages: "'y' holds", "'classes' names".

    Returns
    -------
    ndarray of float64, shape (n, n_classes)
        Rows sum to 1.

    Raises
    ------
    InvalidInputError
        If there is not one column per class, a value is negative or not finite, or a row does not sum to 1.
    """
    probabilities = check_features(values, parameter).astype(np.float64)
    shape = probabilities.shape
    if shape[1] != n_classes:
        raise InvalidInputError(
            f"The '{parameter}' parameter must have one column of probabilities per class, in the order of "
            f"the sorted classes. Got shape {shape}, where {classes_from} {n_classes} classes."
            + (" Name the class of every column with the 'classes' parameter." * (parameter == "X"))
        )
    if (rows := np.flatnonzero((probabilities < 0).any(axis=1))).size:
        raise InvalidInputError(
            f"The '{parameter}' parameter must be class probabilities, none of them negative. Got shape "
            f"{shape} with {len(rows)} such rows; the first is row {rows[0]}, with "
            f"{probabilities[rows[0]].min():g}. Apply a softmax to logits first."
        )
    sums = probabilities.sum(axis=1)
    if (rows := np.flatnonzero(np.abs(sums - 1) > ROUNDING)).size:
        raise InvalidInputError(
            f"The '{parameter}' parameter must be class probabilities, every row summing to 1. Got shape "
            f"{shape} with {len(rows)} rows that do not; the first is row {rows[0]}, with the sum "
            f"{sums[rows[0]]:g}. Apply a softmax to logits first."
        )
    return np.asarray(probabilities / sums[:, None])


def check_probabilities(
    X: Any, y: Any, *, classes: Any, missing_label: object
) -> tuple[FloatArray, EncodedLabels]:
    """Check class probabilities, and encode the given labels as codes of their columns.

    Parameters
    ----------
    X : array-like of shape (n, C)
        Class probabilities, one row per sample.
    y : array-like of shape (n,)
        Given labels.
    classes : array-like of shape (C,) or None
        The class of every column; ``None`` takes the distinct labels of ``y``, sorted.
    missing_label : object
        A value of ``y`` that means "no label", besides ``None``, NaN and the empty string.

    Returns
    -------
    probabilities : ndarray of float64, shape (n, C)
        Rows sum to 1.
    labels : EncodedLabels
        Codes of the given labels and the class of every code.
    """
    features = check_features(X, "X")
    given = check_given_labels(y, len(features), missing_label=missing_label, classes=classes)
    source = "'y' holds" if classes is None else "'classes' names"
    return check_class_probabilities(features, len(given.class_values), "X", classes_from=source), given


def check_pred_probs(pred_probs: Any, n_samples: int, n_classes: int, same_as: str = "y") -> FloatArray:
    """Check predicted class probabilities that are passed in addition to other evidence.

    Parameters
    ----------
    pred_probs : array-like of shape (n_samples, n_classes)
        Probabilities, one row per sample and one column per class in the order of the classes.
    n_samples : int
        Number of samples.
    n_classes : int
        Number of classes.
    same_as : str, default="y"
        The parameter that the number of samples comes from, for error messages.

    Returns
    -------
    ndarray of float64, shape (n_samples, n_classes)
        Rows sum to 1.
    """
    features = check_features(pred_probs, "pred_probs")
    check_same_length(same_as, n_samples, "pred_probs", len(features))
    return check_class_probabilities(features, n_classes, "pred_probs")
