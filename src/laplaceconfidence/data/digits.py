"""The embedded data set: the handwritten digits that come with scikit-learn."""

from __future__ import annotations

import numpy as np

from laplaceconfidence.data.dataset import NoisyDataset

_DARKEST = 16.0  # the digits count the set pixels of 4 x 4 squares


def load_digits() -> NoisyDataset:
    """1,797 digits: features (n, 64) from 0 to 1, images (n, 8, 8, 1), and labels that are all right."""
    from sklearn import datasets

    pixels, digits = datasets.load_digits(return_X_y=True)
    shares = pixels / _DARKEST
    return NoisyDataset.from_arrays(
        digits,
        shares.astype(np.float32),
        images=np.round(255 * shares).astype(np.uint8).reshape(-1, 8, 8, 1),
        true_labels=digits,
    )
