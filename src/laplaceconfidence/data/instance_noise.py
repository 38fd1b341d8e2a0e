"""Noise that depends on the sample: its features decide how likely it is mislabeled, and as what."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from laplaceconfidence.arrays import FloatArray, IntArray, row_blocks

SPREAD = 0.1
"""Standard deviation of the flip rates of single samples around the nominal one (Xia et al., 2020)."""

_CONTRAST = 3.0  # standard deviation of the scores of the wrong classes: a few of them draw most samples
_ROWS_PER_BLOCK = 8_192


def draw_instance_labels(
    true_labels: IntArray, features: Any, n_classes: int, rate: float, generator: np.random.Generator
) -> IntArray:
    """Noisy label codes after Xia et al., "Part-dependent label noise" (NeurIPS 2020).

    Every sample has a flip rate of its own, drawn from a normal distribution around ``rate`` cut to [0, 1];
    the cut moves the mean of rates near 0 and 1 inwards, but a rate of 0 flips nobody. What it is taken for
    is drawn from a softmax over the wrong classes of its centered, normalized features under a random
    projection that belongs to its true class: alike samples of a class are mistaken for the same thing.
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
    """Draws from a normal distribution cut to [0, 1], through the inverse of its distribution function."""
    lowest, highest = ndtr((0 - rate) / SPREAD), ndtr((1 - rate) / SPREAD)
    quantiles = lowest + generator.random(n_samples) * (highest - lowest)
    return np.asarray(np.clip(rate + SPREAD * ndtri(quantiles), 0, 1))


def _directions(features: Any, center: FloatArray) -> FloatArray:
    """Rows seen from the center, of length one; a row at the center has no direction and stays zero."""
    centered = features.astype(np.float32) - center
    lengths = np.linalg.norm(centered, axis=1, keepdims=True)
    return np.asarray(centered / np.where(lengths > 0, lengths, 1))
