"""The embedded data set."""

import numpy as np
from sklearn import datasets

from laplaceconfidence.data.digits import load_digits
from laplaceconfidence.data.readers import read_dataset


def test_the_digits_of_scikit_learn() -> None:
    data, published = load_digits(), datasets.load_digits()
    assert len(data) == 1797
    assert data.class_names == tuple("0123456789")
    assert data.features is not None
    assert data.features.dtype == np.float32
    np.testing.assert_array_equal(data.features * 16, published.data)
    assert data.images is not None
    assert data.images.shape == (1797, 8, 8, 1)
    assert data.images.max() == 255
    np.testing.assert_allclose(data.images[..., 0] / 255, published.images / 16, atol=0.5 / 255)
    np.testing.assert_array_equal(data.labels, published.target)
    np.testing.assert_array_equal(data.true_labels, published.target)


def test_they_are_read_by_name() -> None:
    np.testing.assert_array_equal(read_dataset("digits").features, load_digits().features)
