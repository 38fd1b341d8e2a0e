"""What ``audit`` takes besides a NoisyDataset, and how it says what it is doing."""

import logging
from typing import Any

import numpy as np
import pandas as pd
import pytest

from audited_runs import noisy_blobs
from laplaceconfidence import NoisyDataset, audit, find_label_issues
from laplaceconfidence.exceptions import InvalidInputError

SETTINGS: dict[str, Any] = {"estimator": "laplace", "n_neighbors": 6, "alpha": 0.9}


def frame() -> pd.DataFrame:
    features, given, _ = noisy_blobs()
    table = pd.DataFrame(features, columns=["emb_0", "emb_1", "emb_2"])
    table["mood"] = np.array(["bad", "fair", "good"])[given]
    return table


def test_every_kind_of_data_gives_the_same_audit() -> None:
    pa = pytest.importorskip("pyarrow")
    table = frame()
    features = table[["emb_0", "emb_1", "emb_2"]].to_numpy()
    expected = audit(NoisyDataset.from_arrays(table["mood"], features), **SETTINGS).table
    columns = {"mood": table["mood"].tolist(), "X": features}
    for result in (
        audit(table, label="mood", features=["emb_0", "emb_1", "emb_2"], **SETTINGS),
        audit(table, label="mood", features="emb_*", **SETTINGS),
        audit(pa.Table.from_pandas(table), label="mood", features="emb_*", **SETTINGS),
        audit(columns, label="mood", features="X", **SETTINGS),
        audit((features, table["mood"]), **SETTINGS),
        audit(Pairs(features, table), **SETTINGS),
    ):
        pd.testing.assert_frame_equal(result.table, expected)


class Pairs:
    def __init__(self, features: Any, table: pd.DataFrame) -> None:
        self._pairs = list(zip(features, table["mood"].tolist(), strict=True))

    def __len__(self) -> int:
        return len(self._pairs)

    def __getitem__(self, row: int) -> tuple[Any, str]:
        return self._pairs[row]


def test_a_hugging_face_dataset_with_named_classes() -> None:
    datasets = pytest.importorskip("datasets")
    features, given, _ = noisy_blobs()
    columns = datasets.Features(
        {"X": datasets.List(datasets.Value("float32")), "label": datasets.ClassLabel(names=["a", "b", "c"])}
    )
    data = datasets.Dataset.from_dict({"X": features.tolist(), "label": given.tolist()}, features=columns)
    result = audit(data, **SETTINGS)
    assert result.n_issues == 9
    assert result.dataset.class_names == ("a", "b", "c")


def test_the_test_set_is_read_with_the_same_options() -> None:
    result = audit(frame(), test=frame().head(5), label="mood", features="emb_*", **SETTINGS)
    assert sorted(result.table.index[result.table["is_leaked"]]) == [0, 1, 2, 3, 4]


def test_a_frame_without_a_label_column_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"'label' parameter must be given.*'emb_0'.*'mood'"):
        audit(frame())


def test_options_of_the_reader_are_refused_for_a_data_set() -> None:
    features, given, _ = noisy_blobs()
    with pytest.raises(InvalidInputError, match="'label' parameter must be left out for a NoisyDataset"):
        audit(NoisyDataset.from_arrays(given, features), label="mood")


def test_settings_of_the_estimator_are_no_options_of_the_reader() -> None:
    with pytest.raises(InvalidInputError, match="'no_such_setting' parameter must be left out for 'laplace'"):
        audit(frame(), label="mood", features="emb_*", estimator="laplace", no_such_setting=3)


def test_stages_are_logged_on_request(caplog: pytest.LogCaptureFixture) -> None:
    features, given, _ = noisy_blobs()
    find_label_issues(given, features, **SETTINGS)
    audit(frame(), label="mood", features="emb_*", **SETTINGS)
    assert caplog.records == []
    audit(frame(), label="mood", features="emb_*", verbose=1, **SETTINGS)
    lines = [record.getMessage() for record in caplog.records]
    assert lines[:2] == ["reading ...", lines[1]]
    assert lines[1].startswith("reading: ")
    assert any(line.startswith("neighbors: ") and line.endswith(" s") for line in lines)
    assert all(record.name == "laplaceconfidence" for record in caplog.records)
    assert all(record.levelno == logging.INFO for record in caplog.records)
    caplog.clear()
    find_label_issues(given, features, verbose=1, **SETTINGS)
    assert caplog.records
