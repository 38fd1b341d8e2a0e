"""Instance-dependent noise: the features decide how likely a sample is mislabeled, and as what."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from laplaceconfidence.arrays import FloatArray, IntArray, row_blocks

SPREAD = 0.1
"""Standard deviation of the flip rates of the samples around the nominal rate (Xia et al., 2020)."""

_CONTRAST = 3.0  # standard deviation of the scores: large enough that few wrong classes get most samples
_ROWS_PER_BLOCK = 8_192


def draw_instance_labels(
    true_labels: IntArray, features: Any, n_classes: int, rate: float, generator: np.random.Generator
) -> IntArray:
    """Draw instance-dependent noisy labels [1]_.

    Every sample has its own flip rate, drawn from a normal distribution around ``rate`` truncated to [0, 1].
    The truncation moves the mean of rates near 0 and 1 inwards; a rate of 0 flips no label. The wrong label
    is drawn from a softmax over the other classes. Its scores are a random projection, one per true class, of
    the centered and normalized features, so that similar samples of a class get similar wrong labels.

    Parameters
    ----------
    true_labels : ndarray of shape (n,)
        Codes of the true labels.
    features : ndarray of shape (n, d)
        Feature vectors.
    n_classes : int
        Number of classes.
    rate : float
        Nominal flip rate.
    generator : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of shape (n,)
        Codes of the noisy labels.

    References
    ----------
    .. [1] Xia et al., "Part-dependent Label Noise: Towards Instance-dependent Label Noise", NeurIPS 2020.
    """
    noisy = true_labels.copy()
    if rate == 0:
        return noisy
    flipped = generator.random(len(true_labels)) < _flip_rates(rate, len(true_labels), generator)
    choice = generator.random(len(true_labels))
    center = features.mean(axis=0, dtype=np.float64).astype(np.float32)
    for true_class in range(n_classes):
        rows = np.flatnonzero(flipped & (true_labels == true_class))
        projection = generator.standard_normal((features.shape[1], n_classes), dtype=np.float32)
        for block in row_blocks(len(rows), _ROWS_PER_BLOCK):
            chunk = rows[block]
            scores = _CONTRAST * _directions(features[chunk], center) @ projection
            scores[:, true_class] = -np.inf
            shares = np.exp(scores - scores.max(axis=1, keepdims=True)).cumsum(axis=1, dtype=np.float64)
            noisy[chunk] = (shares <= (choice[chunk] * shares[:, -1])[:, np.newaxis]).sum(axis=1)
    return noisy


def _flip_rates(rate: float, n_samples: int, generator: np.random.Generator) -> FloatArray:
    """Draw from a normal distribution truncated to [0, 1], by inverting its distribution function."""
    lowest, highest = ndtr((0 - rate) / SPREAD), ndtr((1 - rate) / SPREAD)
    quantiles = lowest + generator.random(n_samples) * (highest - lowest)
    return np.asarray(np.clip(rate + SPREAD * ndtri(quantiles), 0, 1))


def _directions(features: Any, center: FloatArray) -> FloatArray:
    """Subtract the center and scale rows to unit length; a row at the center stays zero."""
    centered = features.astype(np.float32) - center
    lengths = np.linalg.norm(centered, axis=1, keepdims=True)
    return np.asarray(centered / np.where(lengths > 0, lengths, 1))
