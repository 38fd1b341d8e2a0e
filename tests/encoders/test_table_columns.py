"""Columns of different kinds as features."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from laplaceconfidence import audit, read_dataset
from laplaceconfidence.data.mixed_columns import MixedColumns, kind_of
from laplaceconfidence.encoders.encoding import encode_dataset
from laplaceconfidence.encoders.samples import RawSamples
from laplaceconfidence.encoders.table_columns import MOST_CATEGORIES, ColumnsEncoder
from laplaceconfidence.exceptions import DataFormatError, InvalidInputError, LaplaceConfidenceWarning


def customers(n: int = 300, seed: int = 0) -> pd.DataFrame:
    """Customers of two kinds, told apart by numbers, categories, dates and notes; some kinds are wrong."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n)
    words = np.array([["late", "refund", "angry"], ["quick", "thanks", "happy"]])
    frame = pd.DataFrame(
        {
            "age": rng.normal(30 + 20 * truth, 6).round(),
            "income": rng.normal(20_000 + 15_000 * truth, 6_000),
            "city": np.where(rng.random(n) < 0.8, np.array(["Rome", "Oslo"])[truth], "Bern"),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.normal(900 * truth, 200), unit="D"),
            "note": [" ".join(rng.choice([*words[t], "the", "one", "was"], 6)) for t in truth],
        }
    )
    wrong = rng.random(n) < 0.1
    frame["kind"] = np.array(["old", "new"])[np.where(wrong, 1 - truth, truth)]
    return frame.assign(wrong=wrong)


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "2.5", "-3e4", None], "number"),
        (["True", "False"], "number"),
        (["2024-01-01", "2023-05-06 10:00:00", None], "date"),
        (["red", "blue", "red"], "category"),
        (["1", "x"], "category"),
        ([None, None], "category"),
        (["the quick brown fox", "jumps over a lazy dog", "and runs far away"], "text"),
        (["the quick brown fox"] * 5, "category"),
    ],
)
def test_what_the_cells_of_a_column_are(cells: list[str | None], kind: str) -> None:
    assert kind_of(np.array(cells, dtype=object)) == kind


def test_every_kind_is_encoded_as_documented() -> None:
    frame = pd.DataFrame({"age": [1.0, 3.0, None, 5.0], "city": ["a", None, "b", "a"], "label": [0, 1, 0, 1]})
    with pytest.warns(LaplaceConfidenceWarning, match="'age' in 1, 'city' in 1 of 4 rows"):
        data, _ = encode_dataset(read_dataset(frame, features="age,city"))
    deviation = np.std([1, 3, 5])
    expected = [
        [-2 / deviation, 0, 1, 0, 0],
        [0, 0, 0, 0, 1],
        [0, 1, 0, 1, 0],
        [2 / deviation, 0, 1, 0, 0],
    ]
    assert data.features is not None
    np.testing.assert_allclose(data.features, expected, atol=1e-6)
    assert data.encoding is not None
    assert data.encoding["summary"] == "columns of a table: 1 number (age), 1 category (city: 2 values)"


def test_rare_categories_share_a_feature_and_unknown_ones_have_none() -> None:
    cells = [f"c{row % 70}" for row in range(140)] + ["c0"] * 10
    encoder = ColumnsEncoder()
    features = encoder.fit_transform(RawSamples("columns", MixedColumns.of(["c"], [cells])))
    assert features.shape == (150, MOST_CATEGORIES)
    assert (features.sum(axis=1) == 1).all()
    assert "70 values, the rarest 21 together" in encoder.summary()
    few = ColumnsEncoder()
    few.fit_transform(RawSamples("columns", MixedColumns.of(["c"], [["a", "b", "a"]])))
    assert few.transform(RawSamples("columns", MixedColumns.of(["c"], [["x", "a"]]))).tolist() == [
        [0, 0],
        [1, 0],
    ]


@pytest.mark.parametrize("written_as", ["frame", "csv", "parquet"])
def test_wrong_labels_are_found_by_columns_of_all_kinds(tmp_path: Path, written_as: str) -> None:
    frame = customers(seed=1)
    source: Any = frame
    if written_as == "csv":
        frame.to_csv(source := tmp_path / "data.csv", index=False)
    elif written_as == "parquet":
        frame.to_parquet(source := tmp_path / "data.parquet")
    result = audit(source, label="kind", features="age,income,city,since,note", random_state=0)
    flagged = result.table.sort_index().is_label_issue.to_numpy()
    assert (flagged & frame.wrong).sum() >= 0.9 * frame.wrong.sum()
    assert (flagged & ~frame.wrong).sum() <= 0.02 * len(frame)
    summary = result.dataset.encoding["summary"]  # type: ignore[index]
    assert summary == (
        "columns of a table: 2 numbers (age, income), 1 date (since), 1 category (city: 3 values), "
        "1 text (note)"
    )


def test_ids_depend_on_the_cells_and_not_on_their_order() -> None:
    frame = customers(20)
    data = read_dataset(frame, label="kind", features="age,city")
    turned = read_dataset(frame.iloc[::-1].reset_index(drop=True), label="kind", features="age,city")
    assert data.ids_from == "content"
    assert sorted(data.sample_ids) == sorted(turned.sample_ids)
    assert data.subset([3, 5]).columns.cells[1].tolist() == frame.city[[3, 5]].tolist()  # type: ignore[union-attr]


def test_a_test_set_is_encoded_like_the_data_set() -> None:
    frame = customers()
    copies = frame.iloc[:10].reset_index(drop=True)
    result = audit(frame, label="kind", features="age,income,city", test=copies, random_state=0)
    assert result.table.sort_index()["is_leaked"].to_numpy()[:10].all()


def test_what_was_learned_survives_json_and_arrays() -> None:
    data = read_dataset(customers(), label="kind", features="age,income,city,since,note")
    assert data.columns is not None
    samples = RawSamples("columns", data.columns)
    encoder = ColumnsEncoder()
    features = encoder.fit_transform(samples)
    plan, arrays = encoder.state()
    again = ColumnsEncoder.from_state(json.loads(json.dumps(plan)), arrays)
    np.testing.assert_allclose(again.transform(samples), features, atol=1e-5)
    with pytest.raises(InvalidInputError, match="the columns age, income, city, since, note, in this order"):
        again.transform(RawSamples("columns", MixedColumns.of(["age"], [["1"]])))
    plan["columns"][0].pop("mean")
    with pytest.raises(DataFormatError, match="damaged"):
        ColumnsEncoder.from_state(plan, arrays)


def test_columns_that_cannot_be_features() -> None:
    frame = customers(60).assign(number=[f"n{row}" for row in range(60)])
    with pytest.raises(InvalidInputError, match="'number', different in every row"):
        audit(frame, label="kind", features="age,number")
    with pytest.raises(InvalidInputError, match=r"'features'.*a column of"):
        read_dataset(frame, label="kind", features="age,no_such_column")
    with pytest.raises(InvalidInputError, match="list of different columns"):
        read_dataset(frame, label="kind", features="age,age")
    with pytest.raises(InvalidInputError, match="not used for something else"):
        read_dataset(frame, label="kind", features="age,kind")
