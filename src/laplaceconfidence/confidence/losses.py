"""Losses as the evidence of an estimator: checked, and brought to the unit interval."""

from __future__ import annotations

from typing import Any

import numpy as np

from laplaceconfidence.arrays import FloatArray, IntArray, to_numpy
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.validation import check_finite, must_be


def check_losses(X: Any) -> FloatArray:
    """Losses as a float vector with at least one entry, not yet known to be finite."""
    losses = to_numpy(X)
    if losses.dtype.kind not in "fiub":
        raise must_be("X", "numeric: the loss of every given label", str(losses.dtype))
    if losses.ndim != 1 or len(losses) == 0:
        raise must_be("X", "one loss a sample, shape (n,) with n of at least 1", f"shape {losses.shape}")
    return losses if losses.dtype in (np.float32, np.float64) else losses.astype(np.float64)


def labeled_losses(losses: FloatArray, codes: IntArray) -> FloatArray:
    """The losses of the labels that are there; those of missing labels may be anything, NaN included."""
    labeled = codes != MISSING
    check_finite(np.where(labeled, losses, 0), "X")
    kept: FloatArray = losses[labeled]
    return kept


def scale_to_unit(losses: FloatArray, lowest: float, highest: float) -> FloatArray:
    """Losses on the scale where ``lowest`` is 0 and ``highest`` is 1; those beyond are put on the border."""
    inside = np.clip(losses.astype(np.float64), lowest, highest)
    # Halves, because the difference of two huge losses may not be a number.
    scaled: FloatArray = (inside / 2 - lowest / 2) / (highest / 2 - lowest / 2)
    return scaled


def are_alike(losses: FloatArray) -> bool:
    """Whether the losses differ by no more than rounding, so that nothing can tell them apart."""
    lowest, highest = float(losses.min()), float(losses.max())
    rounding = 4 * float(np.finfo(losses.dtype).eps)
    return highest / 2 - lowest / 2 <= rounding * max(abs(lowest), abs(highest)) / 2
