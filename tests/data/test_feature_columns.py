"""Which columns of a table become features: named ones, or those that are clearly an embedding."""

import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laplaceconfidence import audit
from laplaceconfidence.data.readers import read_dataset
from laplaceconfidence.exceptions import InvalidInputError, LaplaceConfidenceWarning


def reviews(n: int = 6) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "label": ["good", "bad"] * (n // 2),
            "text": [f"review {row}" for row in range(n)],
            "user_id": range(n),
            "year": [2020] * n,
            "stars": [5, 1] * (n // 2),
        }
    )


def embedded(n: int = 6, first: int = 0, count: int = 8) -> pd.DataFrame:
    values = np.random.default_rng(0).normal(size=(n, count))
    return reviews(n).join(pd.DataFrame(values, columns=[f"emb_{first + k}" for k in range(count)]))


def test_integers_beside_a_text_are_not_audited() -> None:
    data = read_dataset(reviews())
    assert data.features is None
    assert data.columns is None
    assert "--features user_id --features year --features stars" in str(data.feature_advice)
    assert "user_id (int64), year (int64), stars (int64)" in str(data.feature_advice)
    texts = reviews(40).assign(text=[f"review {row} is {'good' * (row % 2)}" for row in range(40)])
    assert audit(texts, random_state=0).dataset.encoding["name"] == "tfidf"  # type: ignore[index]


def test_numbers_alone_are_refused_with_a_line_to_copy(tmp_path: Path) -> None:
    frame = reviews().drop(columns="text").assign(score=0.5)
    frame.to_csv(tmp_path / "data.csv")
    for source in (frame, tmp_path / "data.csv"):
        with pytest.raises(InvalidInputError) as refused:
            read_dataset(source)
        assert "\n  --features score\n" in str(refused.value)
        assert "features='score'" in str(refused.value)
        assert "year (int64), stars (int64), score (float64)" in str(refused.value)


@pytest.mark.parametrize("first", [0, 1])
def test_a_numbered_run_of_floats_is_an_embedding(tmp_path: Path, first: int) -> None:
    frame = embedded(first=first)
    frame.to_csv(tmp_path / "data.csv", index=False)
    frame.to_parquet(tmp_path / "data.parquet")
    for source in (frame, tmp_path / "data.csv", tmp_path / "data.parquet"):
        data = read_dataset(source)
        assert data.feature_columns == tuple(f"emb_{first + k}" for k in range(8))
        assert data.features is not None
        assert data.features.shape == (6, 8)


@pytest.mark.parametrize(
    "change",
    [
        lambda frame: frame.drop(columns="emb_3"),  # seven columns
        lambda frame: frame.rename(columns={"emb_7": "emb_9"}),
        lambda frame: frame.astype({"emb_7": "float32"}),
        lambda frame: frame.assign(emb_3=["0.5", "?", "0.5", "0.5", "0.5", "0.5"]),
        lambda frame: frame.astype({f"emb_{k}": int for k in range(8)}),
        lambda frame: frame.join(frame.filter(like="emb").add_prefix("other_")),
        lambda frame: frame.rename(columns={f"emb_{k}": f"{2015 + k}" for k in range(8)}),
        lambda frame: frame.assign(boxes=[[1.0, 2.0]] * 6),
    ],
)
def test_what_is_not_clearly_an_embedding_is_not_used(change: Any) -> None:
    frame = change(embedded())
    assert read_dataset(frame).features is None
    with pytest.raises(InvalidInputError, match=r"(?s)parameter must be given.*--features"):
        read_dataset(frame.drop(columns="text"))


def test_numbers_beside_image_paths_are_not_features() -> None:
    frame = reviews().rename(columns={"text": "path"})
    data = read_dataset(frame)
    assert data.features is None
    assert data.source_kind == "image"


def test_decimals_are_numbers(tmp_path: Path) -> None:
    prices = [Decimal("1.25"), Decimal("2.50"), Decimal("3.75")]
    table = pa.table({"label": ["a", "b", "a"], "price": pa.array(prices, pa.decimal128(10, 2))})
    pq.write_table(table, tmp_path / "data.parquet")
    frame = pd.DataFrame({"label": ["a", "b", "a"], "price": prices})
    for source in (tmp_path / "data.parquet", table, frame):
        data = read_dataset(source, features="price")
        np.testing.assert_array_equal(data.features, [[1.25], [2.5], [3.75]])


def test_a_bad_cell_of_a_named_column_is_counted(tmp_path: Path) -> None:
    frame = embedded().assign(emb_3=["0.5", "0.5", "?", "0.5", "n.a.", "0.5"])
    frame.to_csv(tmp_path / "data.csv", index=False)
    for source in (frame, tmp_path / "data.csv"):
        with pytest.raises(InvalidInputError) as refused:
            read_dataset(source, features="emb_*")
        message = "Got 'emb_3' instead. 2 of its 6 cells are not numbers; the first, in row 2, is '?'"
        assert message in str(refused.value)


def measured(n: int = 300) -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    """Six good features, one id of large numbers, and which labels are wrong."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=n)
    frame = pd.DataFrame(rng.normal(size=(n, 6)) + 3 * truth[:, None], columns=list("abcdef"))
    wrong = rng.random(n) < 0.1
    frame.insert(0, "label", np.where(wrong, 1 - truth, truth))
    return frame.assign(customer_number=rng.integers(10**6, 10**7, size=n)), wrong


def test_columns_on_different_scales_are_standardized() -> None:
    frame, wrong = measured()
    columns = [*"abcdef", "customer_number"]
    with pytest.warns(LaplaceConfidenceWarning, match="'customer_number' is about .* times as large as"):
        data = read_dataset(frame, features=columns)
    np.testing.assert_array_equal(data.features, frame[columns])  # as they are, for exports
    assert data.features is not None
    compared = data.comparable(data.features)
    np.testing.assert_allclose(compared.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(compared.std(axis=0), 1)
    table = audit(data, random_state=0).table.sort_index()
    worst = table["label_score"].to_numpy() <= np.sort(table["label_score"])[wrong.sum() - 1]
    assert (worst & wrong).sum() >= 0.9 * wrong.sum()
    assert (table["is_label_issue"].to_numpy() & ~wrong).sum() <= 0.05 * len(frame)


def test_a_test_set_is_standardized_like_the_audited_set() -> None:
    frame, _ = measured()
    copies = frame.iloc[:20].assign(customer_number=frame["customer_number"][:20])
    with pytest.warns(LaplaceConfidenceWarning):
        result = audit(frame, test=copies, features=[*"abcdef", "customer_number"], random_state=0)
    assert result.table.sort_index()["is_leaked"].to_numpy()[:20].all()


def test_a_test_set_with_its_columns_in_another_order_is_refused() -> None:
    frame = embedded(40)
    turned = frame[frame.columns[::-1]]
    with pytest.raises(InvalidInputError, match=r"same columns .*'emb_0' at position 0. Got 'emb_7'"):
        audit(frame, test=turned)


def test_an_embedding_keeps_its_scales() -> None:
    frame = embedded().assign(emb_0=1000.0 * np.arange(6))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_dataset(frame).feature_scaling is None
        assert read_dataset(frame, features="emb_*").feature_scaling is None
