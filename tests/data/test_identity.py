"""Ids of samples that are derived from their content, and the search for samples by id."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laplaceconfidence import NoisyDataset
from laplaceconfidence.data.identity import ContentIds, is_digest
from laplaceconfidence.data.readers import read_dataset
from laplaceconfidence.data.sample_search import ABSENT, find_classes, find_samples


def of_features(features: Any, labels: Any = None, **more: Any) -> NoisyDataset:
    labels = np.arange(len(features)) % 2 if labels is None else labels
    return NoisyDataset.from_arrays(labels, np.asarray(features), classes=[0, 1], **more)


def test_ids_do_not_depend_on_order_subset_labels_or_precision() -> None:
    features = np.random.default_rng(0).normal(size=(50, 4))
    ids = of_features(features).sample_ids
    assert all(is_digest(id) and len(id) == 16 for id in ids)
    assert len(set(ids)) == 50
    order = np.random.default_rng(1).permutation(50)[:30]
    assert of_features(features[order]).sample_ids.tolist() == ids[order].tolist()
    relabeled = of_features(features.astype(np.float32), np.ones(50, dtype=int))
    assert relabeled.sample_ids.tolist() == ids.tolist()
    assert of_features(features).subset(order).sample_ids.tolist() == ids[order].tolist()


def test_copies_are_numbered_and_keep_their_number_in_a_subset() -> None:
    data = of_features([[1.0, -0.0], [2.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    first, other, second, third = data.sample_ids
    assert (second, third) == (f"{first}-2", f"{first}-3")
    assert other != first
    assert data.subset([3, 1]).sample_ids.tolist() == [third, other]


def test_samples_that_are_equal_only_when_rounded_are_no_copies() -> None:
    features = np.array([[1e9 + 1], [1e9 + 2], [1e9 + 1], [5.0]])
    ids = of_features(features).sample_ids
    again = of_features(features[[1, 0, 2, 3]]).sample_ids
    assert again[0] == ids[1]  # not the first of two "copies"
    assert (ids[2], again[2]) == (f"{ids[0]}-2", f"{ids[0]}-2")


@pytest.mark.parametrize("blank", ["", "same"])
def test_equal_texts_with_different_features_are_told_apart(blank: str) -> None:
    texts, features = [blank, "b", blank, blank], np.array([[1.0], [2.0], [3.0], [3.0]])
    ids = of_features(features, sources=texts, source_kind="text").sample_ids
    order = [3, 2, 1, 0]
    again = of_features(features[order], sources=[texts[row] for row in order], source_kind="text").sample_ids
    assert again[3] == ids[0]
    assert set(again[:2]) == set(ids[2:])
    assert again[2] == ids[1]


def test_texts_come_before_features_and_images_before_features() -> None:
    texts = [f"text {row}" for row in range(4)]
    embedded = of_features(np.eye(4), sources=texts, source_kind="text")
    embedded_anew = of_features(2 * np.eye(4), sources=texts, source_kind="text")
    assert embedded.sample_ids.tolist() == embedded_anew.sample_ids.tolist()
    images = np.arange(4 * 12, dtype=np.uint8).reshape(4, 2, 2, 3)
    data = NoisyDataset.from_arrays([0, 1, 0, 1], images=images)
    assert data.with_features(np.eye(4)).sample_ids.tolist() == data.sample_ids.tolist()
    wide = NoisyDataset.from_arrays([0, 1, 0, 1], images=images.reshape(4, 1, 4, 3))
    assert not set(wide.sample_ids) & set(data.sample_ids)


def test_samples_without_content_have_their_row_numbers() -> None:
    data = NoisyDataset.from_arrays(["a", "b"])
    assert data.sample_ids.tolist() == ["0", "1"]
    assert data.ids_from == "rows"
    assert of_features(np.eye(2)).ids_from == "content"
    assert of_features(np.eye(2), ids=["x", "y"]).ids_from == "data"


def test_ids_are_computed_once_and_only_on_request() -> None:
    calls = []

    def compute() -> Any:
        calls.append(1)
        return np.array(["a", "b", "c"])

    ids = ContentIds(compute)
    part = ids.take(np.array([2, 0]))
    assert not calls
    assert part.values.tolist() == ["c", "a"]
    assert ids.values.tolist() == ["a", "b", "c"]
    assert len(calls) == 1


def test_a_data_set_can_be_copied_before_and_after_its_ids_are_known() -> None:
    data = of_features(np.eye(3))
    before = copy.deepcopy(data)  # the way pickle takes
    assert before.sample_ids.tolist() == data.sample_ids.tolist()
    assert copy.deepcopy(data).sample_ids.tolist() == data.sample_ids.tolist()


def test_paths_in_a_table_are_ids_as_they_are_written_there(tmp_path: Path) -> None:
    table = pd.DataFrame({"path": ["a.png", "b.png", "a.png", ""], "label": list("xyxy")})
    table["e"] = [1.0, 2.0, 1.0, 4.0]
    table.to_csv(tmp_path / "t.csv", index=False)
    data = read_dataset(tmp_path / "t.csv", features=["e"])
    assert data.sample_ids[:3].tolist() == ["a.png", "b.png", "a.png-2"]
    assert is_digest(data.sample_ids[3])
    assert data.sources is not None
    assert data.sources[0] == str(tmp_path / "a.png")


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_ids_are_the_same_in_every_format(tmp_path: Path, suffix: str) -> None:
    features = np.random.default_rng(0).normal(size=(20, 8)).astype(np.float32)
    labels = np.arange(20) % 2
    frame = pd.DataFrame(features, columns=[f"e{column}" for column in range(8)]).assign(label=labels)
    path = tmp_path / f"d.{suffix}"
    if suffix == "csv":
        frame.to_csv(path, index=False)
    elif suffix == "parquet":
        frame.to_parquet(path)
    else:
        np.savez(path, features=features, labels=labels)
    assert read_dataset(path).sample_ids.tolist() == of_features(features).sample_ids.tolist()


def test_among_copies_one_with_the_same_label_is_found() -> None:
    before = of_features([[1.0], [1.0], [2.0]], [0, 1, 0])
    swapped = of_features([[1.0], [1.0], [2.0]], [1, 0, 0])
    rows = find_samples(swapped, before.sample_ids.tolist(), labels=[0, 1, 0])
    assert rows.tolist() == [1, 0, 2]
    one_left = of_features([[1.0], [2.0]], [1, 0])
    rows = find_samples(one_left, before.sample_ids.tolist(), labels=[0, 1, 0])
    assert rows.tolist() == [ABSENT, 0, 1]


def test_given_ids_that_look_like_copies_are_taken_literally() -> None:
    data = of_features([[1.0], [2.0]], ids=["00112233aabbccdd-2", "00112233aabbccdd-3"])
    assert find_samples(data, ["00112233aabbccdd", "00112233aabbccdd-3"]).tolist() == [ABSENT, 1]


def test_classes_are_found_by_name_or_as_they_are_written() -> None:
    data = NoisyDataset.from_arrays([0, 1], class_names=["cat", "dog"])
    assert find_classes(data, ["dog", "cat", "owl"], ["dog", "cat", "owl"]) == [1, 0, ABSENT]
    assert find_classes(data, ["0", "1", "2"], [0, 1, 2]) == [0, 1, ABSENT]


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[Any], list[int], bool]:
    """Contents with copies, labels, and whether the contents are texts."""
    are_texts = draw(st.booleans())
    content = st.sampled_from(["", "a", "b", "a ", "=1+1", "é"]) if are_texts else st.integers(-2, 2)
    contents = draw(st.lists(content, min_size=1, max_size=12))
    labels = draw(st.lists(st.integers(0, 1), min_size=len(contents), max_size=len(contents)))
    return contents, labels, are_texts


def made(contents: list[Any], labels: list[int], are_texts: bool) -> NoisyDataset:
    if are_texts:
        return NoisyDataset.from_arrays(labels, classes=[0, 1], sources=contents, source_kind="text")
    return of_features(np.array(contents, dtype=float)[:, None], labels)


@settings(max_examples=200, deadline=None)
@given(tables(), st.data())
def test_verdicts_land_on_samples_with_the_same_content(
    table: tuple[list[Any], list[int], bool], data: st.DataObject
) -> None:
    contents, labels, are_texts = table
    before = made(contents, labels, are_texts)
    judged = sorted(data.draw(st.sets(st.sampled_from(range(len(contents))), min_size=1)))
    order = data.draw(st.permutations(range(len(contents))))
    left = order[: data.draw(st.integers(1, len(order)))]
    relabeled = [labels[row] if data.draw(st.booleans()) else 1 - labels[row] for row in left]
    now = made([contents[row] for row in left], relabeled, are_texts)
    known = data.draw(st.sampled_from([None, [labels[row] for row in judged]]))
    found = find_samples(now, before.sample_ids[judged].tolist(), labels=known)
    landed = [row for row in found.tolist() if row != ABSENT]
    assert len(set(landed)) == len(landed)
    for position, row in zip(judged, found.tolist(), strict=True):
        if row != ABSENT:
            assert contents[left[row]] == contents[position]
    # As many verdicts about a content land as there are samples with it.
    for content in {contents[row] for row in judged}:
        n_judged = sum(contents[row] == content for row in judged)
        n_left = sum(contents[row] == content for row in left)
        n_landed = sum(
            row != ABSENT and contents[position] == content
            for position, row in zip(judged, found.tolist(), strict=True)
        )
        assert n_landed == min(n_judged, n_left)
