"""The handwritten digits that come with scikit-learn."""

from __future__ import annotations

import numpy as np

from laplaceconfidence.data.dataset import NoisyDataset

_DARKEST = 16.0  # every value counts the set pixels of a 4 x 4 square


def load_digits() -> NoisyDataset:
    """Load the 1,797 handwritten digits of scikit-learn, all with their true labels.

    Returns
    -------
    NoisyDataset
        Features of shape (1797, 64) from 0 to 1, and images of shape (1797, 8, 8, 1).

    Examples
    --------
    >>> from laplaceconfidence import load_digits
    >>> load_digits().features.shape
    (1797, 64)
    """
    from sklearn import datasets

    pixels, digits = datasets.load_digits(return_X_y=True)
    shares = pixels / _DARKEST
    return NoisyDataset.from_arrays(
        digits,
        shares.astype(np.float32),
        images=np.round(255 * shares).astype(np.uint8).reshape(-1, 8, 8, 1),
        true_labels=digits,
    )
