"""A test set speaks of the classes of the training set."""

import pytest

from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.shared_classes import with_classes_of
from laplaceconfidence.exceptions import InvalidInputError


def test_codes_follow_the_names() -> None:
    train = NoisyDataset.from_arrays(["cat", "dog", "emu"])
    test = NoisyDataset.from_arrays(["emu", None, "dog"], true_labels=["dog", "emu", "dog"])
    aligned = with_classes_of(test, train)
    assert aligned.class_names == train.class_names
    assert aligned.labels.tolist() == [2, -1, 1]
    assert aligned.true_labels is not None
    assert aligned.true_labels.tolist() == [1, 2, 1]


def test_unknown_classes_are_named() -> None:
    train = NoisyDataset.from_arrays(["cat", "dog"])
    with pytest.raises(
        InvalidInputError, match=r"'test' parameter must be labeled with the classes 'cat', 'dog'. Got 'emu'"
    ):
        with_classes_of(NoisyDataset.from_arrays(["emu", "cat"]), train)
