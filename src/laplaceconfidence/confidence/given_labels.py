"""What every estimator does with the given labels: check them, and read distributions at them."""

from __future__ import annotations

from typing import Any

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.data.labels import MISSING, EncodedLabels, encode_labels
from laplaceconfidence.exceptions import InvalidInputError
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


def at_given_labels(distributions: FloatArray, codes: IntArray) -> FloatArray:
    """The entry of every row at its given label; NaN where none was given."""
    entries = distributions[np.arange(len(codes)), np.maximum(codes, 0)]
    return np.where(codes == MISSING, np.nan, entries)


def class_shares(codes: IntArray, n_classes: int) -> FloatArray:
    """Share of every class among the labels that are there."""
    counts = np.bincount(codes[codes != MISSING], minlength=n_classes)
    shares: FloatArray = counts / counts.sum()
    return shares
