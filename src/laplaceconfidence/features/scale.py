"""Unit length and principal components."""

from __future__ import annotations

import numpy as np

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.validation import check_integer

_ROWS_AT_ONCE = 16_384


def unit_length(features: FloatArray) -> FloatArray:
    """Every row divided by its Euclidean length; rows of zeros stay zero."""
    largest = np.abs(features).max(axis=1, keepdims=True)
    # Scaling by the largest entry first keeps the squares of huge and tiny values representable.
    scaled: FloatArray = np.divide(features, largest, out=np.zeros_like(features), where=largest > 0)
    lengths = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))[:, None]
    np.divide(scaled, lengths, out=scaled, where=lengths > 0)
    return scaled


def principal_axes(features: FloatArray, n_components: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean (d,), the axes of largest variance (d, n_components) and the variances along them.

    Exact, through the d x d covariance: for tall matrices this beats a randomized SVD and needs no seed.
    The sign of every axis is fixed (its largest entry is positive), so results do not depend on LAPACK.
    """
    n, d = features.shape
    check_integer(n_components, "n_components", minimum=1, maximum=min(n, d))
    mean = features.mean(axis=0, dtype=np.float64)
    covariance = np.zeros((d, d))
    for start in range(0, n, _ROWS_AT_ONCE):
        rows = features[start : start + _ROWS_AT_ONCE] - mean.astype(features.dtype)
        covariance += rows.T @ rows
    variances, axes = np.linalg.eigh(covariance / n)
    variances, axes = variances[::-1][:n_components], axes[:, ::-1][:, :n_components]
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(n_components)])
    kept: tuple[FloatArray, ...] = (mean, axes, np.maximum(variances, 0))
    mean, axes, variances = (array.astype(features.dtype) for array in kept)
    return mean, axes, variances


def project(features: FloatArray, mean: FloatArray, axes: FloatArray) -> FloatArray:
    """Coordinates of ``features`` along ``axes``, measured from ``mean``."""
    return np.ascontiguousarray(features @ axes - mean @ axes)
