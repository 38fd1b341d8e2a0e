"""Scaling to unit length and principal component analysis."""

from __future__ import annotations

import numpy as np

from laplaceconfidence.arrays import FloatArray, row_blocks
from laplaceconfidence.validation import check_integer

_ROWS_PER_BLOCK = 16_384


def unit_length(features: FloatArray) -> FloatArray:
    """Divide every row by its Euclidean length; rows of zeros stay zero.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        Feature vectors.

    Returns
    -------
    ndarray of shape (n, d)
    """
    largest = np.abs(features).max(axis=1, keepdims=True)
    # Scaling by the largest entry first keeps the squares of huge and tiny values representable.
    scaled: FloatArray = np.divide(features, largest, out=np.zeros_like(features), where=largest > 0)
    lengths = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))[:, None]
    np.divide(scaled, lengths, out=scaled, where=lengths > 0)
    return scaled


def principal_axes(features: FloatArray, n_components: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Compute the principal axes from the eigenvectors of the d x d covariance matrix.

    For matrices with many more rows than columns this is faster than a randomized SVD, and it needs no seed.
    The entry of largest absolute value of every axis is positive, so the signs do not depend on LAPACK.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        Feature vectors.
    n_components : int
        Number of axes, at most min(n, d).

    Returns
    -------
    mean : ndarray of shape (d,)
    axes : ndarray of shape (d, n_components)
        The axes of largest variance.
    variances : ndarray of shape (n_components,)
        The variances along the axes, largest first.
    """
    n, d = features.shape
    check_integer(n_components, "n_components", minimum=1, maximum=min(n, d))
    mean = features.mean(axis=0, dtype=np.float64)
    covariance = np.zeros((d, d))
    for rows in row_blocks(n, _ROWS_PER_BLOCK):
        centered = features[rows] - mean.astype(features.dtype)
        covariance += centered.T @ centered
    variances, axes = np.linalg.eigh(covariance / n)
    variances, axes = variances[::-1][:n_components], axes[:, ::-1][:, :n_components]
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(n_components)])
    kept: tuple[FloatArray, ...] = (mean, axes, np.maximum(variances, 0))
    mean, axes, variances = (array.astype(features.dtype) for array in kept)
    return mean, axes, variances


def project(features: FloatArray, mean: FloatArray, axes: FloatArray) -> FloatArray:
    """Compute the coordinates of centered features along axes.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        Feature vectors.
    mean : ndarray of shape (d,)
        Subtracted from the features.
    axes : ndarray of shape (d, n_components)
        The axes.

    Returns
    -------
    ndarray of shape (n, n_components)
    """
    return np.ascontiguousarray(features @ axes - mean @ axes)
