"""Checks of the losses that the mixture estimators take, and their scaling to [0, 1]."""

from __future__ import annotations

from typing import Any

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray, to_numpy
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.validation import check_finite, must_be


def check_losses(X: Any) -> FloatArray:
    """Check that losses are a numeric vector with at least one entry; NaN is allowed.

    Parameters
    ----------
    X : array-like of shape (n,)
        Loss of every given label.

    Returns
    -------
    ndarray of shape (n,)
        float32 or float64.
    """
    losses = to_numpy(X)
    if losses.dtype.kind not in "fiub":
        raise must_be("X", "numeric: the loss of every given label", str(losses.dtype))
    if losses.ndim != 1 or len(losses) == 0:
        raise must_be("X", "one loss per sample, shape (n,) with n of at least 1", f"shape {losses.shape}")
    return losses if losses.dtype in (np.float32, np.float64) else losses.astype(np.float64)


def labeled_losses(losses: FloatArray, codes: IntArray) -> FloatArray:
    """Select the losses of the labels that are not missing, and check that they are finite.

    Parameters
    ----------
    losses : ndarray of shape (n,)
        Losses; those of missing labels may be NaN.
    codes : ndarray of shape (n,)
        Codes of the given labels, ``MISSING`` where none was given.

    Returns
    -------
    ndarray of shape (n_labeled,)
    """
    labeled = codes != MISSING
    check_finite(np.where(labeled, losses, 0), "X")
    kept: FloatArray = losses[labeled]
    return kept


def scale_to_unit(losses: FloatArray, lowest: float, highest: float) -> FloatArray:
    """Scale losses linearly so that ``lowest`` becomes 0 and ``highest`` 1; others are clipped to [0, 1].

    Parameters
    ----------
    losses : ndarray of shape (n,)
        Losses.
    lowest, highest : float
        The ends of the scale.

    Returns
    -------
    ndarray of shape (n,)
        In float64.
    """
    inside = np.clip(losses.astype(np.float64), lowest, highest)
    # Halves, because the difference of two huge losses may overflow.
    scaled: FloatArray = (inside / 2 - lowest / 2) / (highest / 2 - lowest / 2)
    return scaled


def are_alike(losses: FloatArray) -> bool:
    """Return whether the losses differ by no more than rounding.

    Parameters
    ----------
    losses : ndarray of shape (n,)
        Losses.

    Returns
    -------
    bool
    """
    lowest, highest = float(losses.min()), float(losses.max())
    rounding = 4 * float(np.finfo(losses.dtype).eps)
    return highest / 2 - lowest / 2 <= rounding * max(abs(lowest), abs(highest)) / 2
