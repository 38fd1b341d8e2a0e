"""The data set holds together: every column describes the same samples."""

import copy
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

from laplaceconfidence import NoisyDataset
from laplaceconfidence.exceptions import InvalidInputError

NAN = float("nan")


def small() -> NoisyDataset:
    return NoisyDataset.from_arrays(
        ["cat", "dog", None, "cat"],
        np.arange(8.0).reshape(4, 2),
        images=np.zeros((4, 2, 2, 3), np.uint8),
        ids=["a", "b", "c", "d"],
        sources=["one", "two", "three", "four"],
        source_kind="text",
        true_labels=["cat", "cat", "emu", "cat"],
    )


def test_from_arrays_keeps_everything() -> None:
    data = small()
    assert len(data) == 4
    assert data.class_names == ("cat", "dog", "emu")
    assert data.n_classes == 3
    assert data.labels.tolist() == [0, 1, -1, 0]
    assert data.true_labels is not None
    assert data.true_labels.tolist() == [0, 0, 2, 0]
    assert data.sample_ids.tolist() == ["a", "b", "c", "d"]
    assert data.sources is not None
    assert data.sources.tolist() == ["one", "two", "three", "four"]


def test_rows_are_numbered_where_no_ids_are_given() -> None:
    assert NoisyDataset.from_arrays([1, 0]).sample_ids.tolist() == ["0", "1"]


def test_long_texts_do_not_make_short_ones_long() -> None:
    data = NoisyDataset.from_arrays(["a"] * 100, sources=["x" * 100_000] + ["y"] * 99, source_kind="text")
    assert data.sources is not None
    assert data.sources.nbytes < 10_000


@pytest.mark.parametrize(
    "labels",
    [
        ["cat", "dog", "cat"],
        ["cat", "", "dog"],
        ["cat", None, "dog"],
        [7, 3, 7],
        pd.Series([7, NAN, 3]),
        pd.Series([7, None, 3], dtype="Int64"),
        pd.Series(["cat", pd.NA, "dog"], dtype="string"),
        pd.Series([True, None, False], dtype="boolean"),
        np.array(["cat", None, "dog"], dtype=object),
    ],
)
def test_unchanged_labels_are_written_as_they_were_given(labels: Any) -> None:
    data = NoisyDataset.from_arrays(labels)
    written = data.labels_as_written()
    for before, after in zip(labels, written, strict=True):
        if pd.isna(before):
            assert after is before or (isinstance(before, float) and isinstance(after, float))
        else:
            assert after == before


def test_only_what_changed_is_written_anew() -> None:
    data = NoisyDataset.from_arrays(pd.Series([7, NAN, 3]))
    np.testing.assert_array_equal(data.labels_as_written(np.array([0, 1, 0])), [3.0, 7.0, 3.0])
    bare = NoisyDataset(labels=np.array([0, -1]), class_names=("cat", "dog"))
    assert bare.labels_as_written(np.array([1, -1])).tolist() == ["dog", None]


@pytest.mark.parametrize(
    ("labels", "class_values", "label_values"),
    [
        (["dog", "", "cat"], ["cat", "dog"], ["dog", None, "cat"]),
        (pd.Series([7, NAN, 3]), [3, 7], [7, None, 3]),
        ([True, False, True], [False, True], [True, False, True]),
    ],
)
def test_label_values_are_class_values_or_none(
    labels: Any, class_values: list[Any], label_values: Any
) -> None:
    data = NoisyDataset.from_arrays(labels)
    assert data.class_values.tolist() == class_values
    assert data.label_values().tolist() == label_values
    bare = NoisyDataset(labels=np.array([1, 0]), class_names=("cat", "dog"))
    assert bare.class_values.tolist() == ["cat", "dog"]
    assert bare.label_values().tolist() == ["dog", "cat"]


def test_names_of_classes_that_are_numbered() -> None:
    data = NoisyDataset.from_arrays([2, -1, 0], class_names=["cat", "dog", "emu"], true_labels=[2, 1, -1])
    assert data.class_names == ("cat", "dog", "emu")
    assert data.labels.tolist() == [2, -1, 0]
    assert data.true_labels is not None
    assert data.true_labels.tolist() == [2, 1, -1]
    assert data.labels_as_written(np.array([1, -1, 0])).tolist() == [1, -1, 0]


def test_names_of_classes_order_labels_that_are_words() -> None:
    data = NoisyDataset.from_arrays(["dog", "cat"], class_names=["dog", "cat", "emu"])
    assert data.labels.tolist() == [0, 1]
    with pytest.raises(InvalidInputError, match="among the 2 classes"):
        NoisyDataset.from_arrays(["dog", "cow"], class_names=["dog", "cat"])


def test_subset_takes_all_columns_and_the_ids() -> None:
    for rows in ([2, 0], np.array([2, 0]), [-2, 0]):
        part = small().subset(rows)
        assert part.sample_ids.tolist() == ["c", "a"]
        assert part.labels.tolist() == [-1, 0]
        assert part.features is not None
        assert part.features.tolist() == [[4, 5], [0, 1]]
        assert part.labels_as_written().tolist() == [None, "cat"]
    assert small().subset([True, False, False, True]).sample_ids.tolist() == ["a", "d"]
    assert NoisyDataset.from_arrays(["a", "b", "c"]).subset([2]).sample_ids.tolist() == ["2"]


def test_other_features_and_other_labels() -> None:
    data = small()
    assert data.with_features(np.ones((4, 7))).features.shape == (4, 7)  # type: ignore[union-attr]
    assert data.with_labels(np.array([1, 1, 1, 1])).labels.tolist() == [1, 1, 1, 1]
    with pytest.raises(InvalidInputError, match="'features' has 3, 'labels' has 4"):
        data.with_features(np.ones((3, 7)))


def test_it_can_be_copied_and_compared_by_identity() -> None:
    data = small()
    assert data == data
    assert data != small()
    assert pickle.loads(pickle.dumps(data)).labels.tolist() == data.labels.tolist()  # noqa: S301
    assert copy.deepcopy(data).class_names == data.class_names


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels": []}, "'labels' parameter must be at least one label"),
        ({"labels": [None, ""]}, "'labels' must hold at least one label that is not missing"),
        ({"labels": ["a"], "features": [[1.0], [2.0]]}, "'features' has 2, 'labels' has 1"),
        ({"labels": ["a"], "ids": ["x", "y"]}, "'ids' has 2, 'labels' has 1"),
        (
            {"labels": ["a", "b"], "ids": ["x", "x"]},
            "'ids' parameter must be different for every sample. Got 'x'",
        ),
        (
            {"labels": ["a"], "sources": ["x"]},
            "'source_kind' parameter must be given together with 'sources'",
        ),
        ({"labels": ["a"], "true_labels": ["a", "b"]}, "'true_labels' has 2, 'labels' has 1"),
        ({"labels": ["a"], "true_labels": [0.5]}, "'true_labels' parameter must be strings or integers"),
        ({"labels": ["a"], "true_labels": [0]}, "must be of the same kind"),
        ({"labels": ["a"], "images": np.zeros((1, 4, 4, 3))}, "'images' parameter must be uint8 of shape"),
        (
            {"labels": ["a"], "images": np.zeros((1, 4, 4), np.uint8)},
            "'images' parameter must be uint8 of shape",
        ),
        ({"labels": ["a"], "features": [[NAN]]}, "'features' parameter must be finite. Got 1 NaN"),
        ({"labels": ["a"], "features": [1.0]}, "'features' parameter must be a matrix"),
        ({"labels": ["a"], "features": [["x"]]}, "'features' parameter must be numeric"),
        ({"labels": [0], "class_names": ["a", "a"]}, "'class_names' parameter must be distinct"),
        (
            {"labels": [5], "class_names": ["a", "b"]},
            r"'labels' parameter must be among the 2 classes \(0, 1\)",
        ),
        ({"labels": [0], "class_names": ["a"], "classes": [0]}, "'class_names' parameter must be left out"),
    ],
)
def test_what_does_not_hold_together_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        NoisyDataset.from_arrays(**arguments)


@pytest.mark.parametrize("codes", [[0, 2], [-2, 0]])
def test_codes_stay_within_the_classes(codes: list[int]) -> None:
    with pytest.raises(InvalidInputError, match=r"'labels' parameter must be codes from -1 to 1. Got -?2"):
        NoisyDataset(labels=np.array(codes), class_names=("a", "b"))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "'rows' parameter must be indices or a mask that keep at least one sample"),
        ([0.5], "'rows' parameter must be indices or a mask"),
        ([9], "'rows' parameter must be below the number of samples, 4. Got 9"),
        ([True], "'rows' has 1, 'labels' has 4"),
        ([False] * 4, "'labels' parameter must be at least one label"),
    ],
)
def test_rows_that_are_not_there(rows: list[Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        small().subset(rows)
