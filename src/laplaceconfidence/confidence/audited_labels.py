"""Labels that a person has verified, as they are passed to an estimator beside the given ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import BoolArray, IntArray, to_numpy
from laplaceconfidence.data.labels import MISSING, distinct_labels, encode_labels
from laplaceconfidence.validation import check_integer, check_same_length, must_be


def audited_column(audited: Any, n_samples: int) -> NDArray[Any] | None:
    """Convert verified labels to a column.

    Parameters
    ----------
    audited : mapping of int to label, array-like of shape (n_samples,) or None
        Verified labels by row number, or a column with missing values.
    n_samples : int
        Number of samples.

    Returns
    -------
    ndarray of shape (n_samples,) or None
        ``None`` in a mapping's column where a sample was not verified; ``None`` if nothing was passed.
    """
    if audited is None:
        return None
    if isinstance(audited, Mapping):
        column = np.full(n_samples, None, dtype=object)
        for row, label in audited.items():
            if isinstance(row, bool) or not isinstance(row, (int, np.integer)) or not 0 <= row < n_samples:
                raise must_be("audited", f"keyed by row numbers from 0 to {n_samples - 1}", row)
            column[int(row)] = label.item() if isinstance(label, np.generic) else label
        return column
    column = to_numpy(audited)
    if column.ndim != 1:
        raise must_be(
            "audited", "a mapping from row to label, or one label per sample", f"shape {column.shape}"
        )
    check_same_length("y", n_samples, "audited", len(column))
    return column


def encode_audited(
    column: NDArray[Any] | None, y: Any, missing_label: object
) -> tuple[NDArray[Any] | None, IntArray | None]:
    """Encode verified labels together with the given ones.

    Parameters
    ----------
    column : ndarray of shape (n,) or None
        The result of ``audited_column``.
    y : array-like of shape (n,)
        Given labels.
    missing_label : object
        A value that means "no label", besides ``None``, NaN and the empty string.

    Returns
    -------
    classes : ndarray of shape (C,) or None
        The distinct given and verified labels, sorted; ``None`` if no label was verified.
    codes : ndarray of shape (n,) or None
        Codes of the verified labels, ``MISSING`` where there is none.
    """
    if column is None:
        return None, None
    if encode_labels(column, missing_label=missing_label, parameter="audited").class_values.size == 0:
        return None, None
    classes = distinct_labels(("y", y), ("audited", column), missing_label=missing_label)
    codes = encode_labels(column, classes=classes, missing_label=missing_label, parameter="audited").codes
    return classes, codes


def rows_as_mask(rows: Collection[int] | None, n_samples: int, parameter: str) -> BoolArray | None:
    """Convert row numbers to a mask.

    Parameters
    ----------
    rows : collection of int or None
        Row numbers.
    n_samples : int
        Number of samples.
    parameter : str
        Name of the parameter in error messages.

    Returns
    -------
    ndarray of bool, shape (n_samples,), or None
        ``None`` if ``rows`` is.
    """
    if rows is None:
        return None
    mask = np.zeros(n_samples, dtype=bool)
    for row in rows:
        mask[check_integer(row, parameter, minimum=0, maximum=n_samples - 1)] = True
    return mask


def labels_to_learn(given: IntArray, audited: IntArray | None) -> IntArray:
    """Replace given labels by verified ones.

    Parameters
    ----------
    given : ndarray of shape (n,)
        Codes of the given labels.
    audited : ndarray of shape (n,) or None
        Codes of the verified labels, ``MISSING`` where there is none.

    Returns
    -------
    ndarray of shape (n,)
    """
    if audited is None:
        return given
    return np.where(audited != MISSING, audited, given)
