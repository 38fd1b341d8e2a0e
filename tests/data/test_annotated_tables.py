"""Tables with labels of several annotators."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from laplaceconfidence import AnnotatorLabels, NoisyDataset, read_dataset
from laplaceconfidence.exceptions import InvalidInputError, LaplaceConfidenceWarning

LONG = pd.DataFrame(
    {
        "item": ["b", "a", "b", "b", "a", "c"],
        "worker": ["Ann", "Ann", "小林", "عمر", "小林", "Ann"],
        "label": ["dog", "cat", "cat", "dog", "dog", None],
        "review": ["woof", "meow", "woof", "woof", "meow", "?"],
    }
)
OPTIONS = {"id": "item", "annotator": "worker", "label": "label", "text": "review"}


def said(dataset: NoisyDataset) -> set[tuple[str, str, str]]:
    given = dataset.annotations
    assert given is not None
    ids, names = dataset.sample_ids[given.samples], given.annotator_names[given.annotators]
    return set(zip(ids.tolist(), names.tolist(), given.labels.astype(str).tolist(), strict=True))


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl", "frame"])
def test_a_long_table_has_a_sample_per_id(tmp_path: Path, suffix: str) -> None:
    source: object = tmp_path / f"labels.{suffix}"
    if suffix == "csv":
        LONG.to_csv(source, index=False)
    elif suffix == "parquet":
        LONG.to_parquet(source)
    elif suffix == "jsonl":
        LONG.to_json(source, orient="records", lines=True)
    else:
        source = LONG
    dataset = read_dataset(source, **OPTIONS)
    assert dataset.sample_ids.tolist() == ["b", "a", "c"]
    assert dataset.class_names == ("cat", "dog")
    assert dataset.labels.tolist() == [1, 0, -1]  # a tie goes to the label that was given first
    assert dataset.sources is not None
    assert dataset.sources.tolist() == ["woof", "meow", "?"]
    expected = LONG.dropna()
    assert said(dataset) == set(zip(expected["item"], expected["worker"], expected["label"], strict=True))


def test_samples_come_from_another_table_in_its_order(tmp_path: Path) -> None:
    LONG.drop(columns="review").to_csv(tmp_path / "labels.csv", index=False)
    items = pd.DataFrame({"item": ["a", "x", "c", "b"], "size": [1.0, 2.0, 3.0, 4.0], "gold": list("cdcd")})
    items["gold"] = items["gold"].map({"c": "cat", "d": "bird"})
    items.to_csv(tmp_path / "items.csv", index=False)
    dataset = read_dataset(
        tmp_path / "labels.csv",
        id="item",
        annotator="worker",
        samples=tmp_path / "items.csv",
        features="size",
        true_label="gold",
    )
    assert dataset.sample_ids.tolist() == ["a", "x", "c", "b"]
    assert dataset.labels.tolist() == [1, -1, -1, 2]
    assert dataset.class_names == ("bird", "cat", "dog")
    assert dataset.features is not None
    assert dataset.features.ravel().tolist() == [1, 2, 3, 4]
    with pytest.raises(InvalidInputError, match=r"'samples' parameter must be a table with all samples.*'b'"):
        read_dataset(LONG, id="item", annotator="worker", samples=items[:3])


def test_a_wide_table_has_a_column_per_annotator(tmp_path: Path) -> None:
    wide = pd.DataFrame({"id": ["a", "b"], "ann_x": ["1", ""], "ann_y": ["cat", "1"], "text": ["m", "w"]})
    wide.to_csv(tmp_path / "wide.csv", index=False)
    dataset = read_dataset(tmp_path / "wide.csv", annotators="ann_*")
    # One column looks like numbers, but the classes are texts.
    assert said(dataset) == {("a", "ann_x", "1"), ("a", "ann_y", "cat"), ("b", "ann_y", "1")}
    assert dataset.class_names == ("1", "cat")
    numbers = pd.DataFrame({f"ann_{who}": [0.0, 1.0, np.nan] for who in range(9)})
    read = read_dataset(numbers, annotators=[f"ann_{who}" for who in range(9)])
    assert read.features is None  # labels that look like an embedding
    assert read.labels.tolist() == [0, 1, -1]


def test_votes_and_classes_of_labels_in_memory() -> None:
    table = [["cat", "cat", "dog"], ["dog", None, "bird"], [None, None, None]]
    dataset = NoisyDataset.from_arrays(table)
    assert dataset.class_names == ("bird", "cat", "dog")
    assert dataset.labels.tolist() == [1, 2, -1]
    codes = NoisyDataset.from_arrays(np.array([[0, 0, -1], [-1, 2, 2]]), class_names=["x", "y", "z"])
    assert codes.labels.tolist() == [0, 2]
    assert codes.annotations is not None
    assert len(codes.annotations.labels) == 4
    part = dataset.subset([1, 0])
    assert part.annotations is not None
    assert part.annotations.votes.tolist() == ["dog", "cat"]
    assert NoisyDataset.from_arrays(["cat", "dog"]).annotations is None
    with pytest.raises(InvalidInputError, match="at least one label"):
        NoisyDataset.from_arrays([[None, None]])


def test_votes_are_the_most_frequent_labels() -> None:
    rng = np.random.default_rng(0)
    samples, labels = rng.integers(20, size=300), rng.integers(4, size=300)
    given = AnnotatorLabels.from_table(samples, rng.integers(9, size=300), labels, sample_ids=np.arange(21))
    for sample in range(20):
        values = labels[samples == sample].tolist()
        most = max(values.count(value) for value in values)
        assert given.votes[sample] == next(value for value in values if values.count(value) == most)
    assert given.votes[20] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"annotator": "who", "id": "item"}, "'annotator' parameter must be one of the columns"),
        ({"annotator": "worker"}, "'id' parameter must be given"),
        ({"annotators": "ann_*"}, "'annotators' parameter must be columns of the frame"),
        ({"annotators": "worker", "annotator": "worker"}, "'annotator' parameter must be left out"),
        ({"samples": LONG, "id": "item"}, "'annotator' parameter must be given where 'samples' is"),
        ({"annotator": "worker", "id": "item", "split": "test"}, "'split' parameter must be left out"),
    ],
)
def test_wrong_options_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        read_dataset(LONG, **options)


def test_cells_that_are_empty_or_differ_are_said() -> None:
    with pytest.raises(InvalidInputError, match=r"'annotator' .* empty in row 1"):
        read_dataset(LONG.assign(worker=["Ann", None, *["Bo"] * 4]), **OPTIONS)
    differs = LONG.assign(review=["woof", "meow", "bark", "woof", "meow", "?"])
    with pytest.warns(LaplaceConfidenceWarning, match="differs between rows of the same sample, in 1 row"):
        assert read_dataset(differs, **OPTIONS).sources[0] == "woof"  # type: ignore[index]
