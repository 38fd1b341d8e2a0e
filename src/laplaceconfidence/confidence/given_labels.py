"""What every estimator does with the given labels: check them, and read distributions at them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.utils import column_or_1d

from laplaceconfidence.arrays import FloatArray, IntArray, to_numpy
from laplaceconfidence.data.labels import MISSING, EncodedLabels, encode_labels
from laplaceconfidence.exceptions import InvalidInputError, LaplaceConfidenceWarning
from laplaceconfidence.validation import check_same_length, must_be


def check_given_labels(
    y: Any, n_samples: int, *, missing_label: object = None, classes: Any = None
) -> EncodedLabels:
    """The labels of ``n_samples`` samples as codes; at least one of them is not missing."""
    if y is None:
        raise must_be("y", "the given labels, one a sample", None)
    given = encode_labels(y, classes=classes, missing_label=missing_label, parameter="y")
    check_same_length("X", n_samples, "y", len(given.codes))
    if (given.codes == MISSING).all():
        raise InvalidInputError(
            f"'y' must hold at least one label that is not missing. Got {n_samples} labels, all missing."
        )
    return given


def check_contrasting_labels(y: Any, missing_label: object) -> EncodedLabels:
    """Labels of at least two classes; warns where one has a single member, or -1 may mean a gap."""
    if y is None:
        raise InvalidInputError("This estimator requires y to be passed, but the target y is None.")
    given = to_numpy(y)
    labels = encode_labels(
        column_or_1d(given, warn=True) if given.ndim == 2 else given,
        missing_label=missing_label,
        parameter="y",
    )
    n_classes = len(labels.class_values)
    if n_classes < 2:
        found = f"{n_classes} class{'es' * (n_classes != 1)}: {labels.class_values.tolist()}"
        raise must_be("y", "labels of at least two classes", found)
    counts = np.bincount(labels.codes[labels.codes != MISSING], minlength=n_classes)
    if (alone := counts == 1).any():
        names = ", ".join(str(value) for value in labels.class_values[alone][:5])
        warnings.warn(
            f"{alone.sum()} of {n_classes} classes have a single member ({names}): nothing else in the "
            "data can speak for those labels, so their confidence is low whether they are right or not.",
            LaplaceConfidenceWarning,
            stacklevel=4,
        )
    if missing_label is None and n_classes > 2 and labels.class_values[0] == -1:
        warnings.warn(
            "The label -1 is taken as a class. Pass missing_label=-1 if it means that there is no label.",
            LaplaceConfidenceWarning,
            stacklevel=4,
        )
    return labels


def at_given_labels(distributions: FloatArray, codes: IntArray) -> FloatArray:
    """The entry of every row at its given label; NaN where none was given."""
    entries = distributions[np.arange(len(codes)), np.maximum(codes, 0)]
    return np.where(codes == MISSING, np.nan, entries)


def class_shares(codes: IntArray, n_classes: int) -> FloatArray:
    """Share of every class among the labels that are there."""
    counts = np.bincount(codes[codes != MISSING], minlength=n_classes)
    shares: FloatArray = counts / counts.sum()
    return shares
