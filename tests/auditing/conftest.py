"""Two heaps of points with a few labels in the wrong heap."""

import numpy as np
import pytest

from laplaceconfidence import NoisyDataset


@pytest.fixture
def wrong_rows() -> list[int]:
    return [3, 17, 31]


@pytest.fixture
def heaps(wrong_rows: list[int]) -> NoisyDataset:
    """40 points in two directions, 'left' and 'right', of which ``wrong_rows`` have the other's label."""
    rng = np.random.default_rng(3)  # a draw in which all three are found (decision 37)
    truth = np.repeat([0, 1], 20)
    features = np.array([[5.0, 0.0], [0.0, 5.0]])[truth] + rng.normal(scale=0.3, size=(40, 2))
    labels = truth.copy()
    labels[wrong_rows] = 1 - labels[wrong_rows]
    return NoisyDataset.from_arrays(
        np.array(["left", "right"])[labels],
        features,
        ids=[f"sample-{row}" for row in range(40)],
        sources=[f"text {row}" for row in range(40)],
        source_kind="text",
    )
