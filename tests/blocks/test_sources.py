"""Features in files: what is read, and what is said about files that are missing or differ."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from laplaceconfidence.blocks.sources import FeatureSource, open_features
from laplaceconfidence.exceptions import DataFormatError, InvalidInputError

X = np.random.default_rng(0).normal(size=(23, 4)).astype(np.float32)


def everything(source: FeatureSource, n_rows: int = 4) -> np.ndarray:
    read = np.full((source.n_rows, source.n_features), np.nan)
    for piece in source.pieces:
        for start, features in source.batches(piece, n_rows):
            assert len(features) <= n_rows
            read[start : start + len(features)] = features
    return read


def test_an_npy_file_is_read_in_pieces(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    source = open_features(tmp_path / "x.npy", rows_per_piece=10)
    assert [piece.stop for piece in source.pieces] == [8, 16, 23]  # of equal sizes
    np.testing.assert_array_equal(everything(source), X)


@pytest.mark.parametrize("dtype", ["float16", "int8", "float64"])
def test_other_types_of_numbers(tmp_path: Path, dtype: str) -> None:
    values = (10 * X).astype(dtype)
    np.save(tmp_path / "x.npy", values)
    np.testing.assert_array_equal(everything(open_features(tmp_path / "x.npy")), values)


def test_a_folder_of_shards_in_numeric_order(tmp_path: Path) -> None:
    for number, rows in enumerate(np.array_split(X, 12)):
        np.save(tmp_path / f"part-{number}.npy", rows)
    np.testing.assert_array_equal(everything(open_features(tmp_path)), X)
    np.testing.assert_array_equal(everything(open_features(str(tmp_path / "part-*.npy"))), X)


@pytest.mark.parametrize("as_lists", [True, False])
def test_parquet_row_groups(tmp_path: Path, as_lists: bool) -> None:
    columns = {"emb": list(X)} if as_lists else {f"e{i}": X[:, i] for i in range(4)}
    frame = pd.DataFrame({**columns, "label": "a"})
    frame[:15].to_parquet(tmp_path / "a.parquet", row_group_size=6)
    frame[15:].to_parquet(tmp_path / "b.parquet", row_group_size=6)
    source = open_features(tmp_path, list(columns))
    assert [piece.stop for piece in source.pieces] == [6, 12, 15, 21, 23]
    np.testing.assert_array_equal(everything(source), X)


def test_any_path_of_fsspec() -> None:
    import fsspec

    with fsspec.open("memory://features/x-0.npy", "wb") as file:
        np.save(file, X)
    np.testing.assert_array_equal(everything(open_features("memory://features/x-0.npy")), X)
    np.testing.assert_array_equal(everything(open_features("memory://features")), X)


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    for number in (0, 1, 3):
        np.save(tmp_path / f"x-{number:03d}.npy", X)
    with pytest.raises(DataFormatError, match=r"lacks x-002\.npy"):
        open_features(tmp_path)
    with pytest.raises(InvalidInputError, match=r"x-002\.npy"):
        open_features([tmp_path / "x-000.npy", tmp_path / "x-002.npy"])


def test_the_last_shard_of_a_stated_number_is_missed(tmp_path: Path) -> None:
    for number in range(3):
        np.save(tmp_path / f"x-{number:05d}-of-00004.npy", X)
    with pytest.raises(DataFormatError, match=r"lacks x-00003-of-00004\.npy"):
        open_features(tmp_path)


def test_a_shard_of_another_width_is_named(tmp_path: Path) -> None:
    np.save(tmp_path / "x-0.npy", X)
    np.save(tmp_path / "x-1.npy", X[:, :3])
    with pytest.raises(DataFormatError, match=r"x-1\.npy has 3 features per sample, but .*x-0\.npy has 4"):
        open_features(tmp_path)


def test_lists_of_other_lengths_are_named(tmp_path: Path) -> None:
    pd.DataFrame({"emb": [[1.0, 2.0], [1.0, 2.0, 3.0]]}).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(DataFormatError, match="a row with 3 features, but others have 2"):
        everything(open_features(tmp_path / "x.parquet", ["emb"]))


def test_damaged_files_are_named(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    content = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(content[:-8])
    with pytest.raises(DataFormatError, match=r"x\.npy is truncated"):
        open_features(tmp_path / "x.npy")
    (tmp_path / "x.npy").write_bytes(b"nothing")
    with pytest.raises(DataFormatError, match=r"x\.npy cannot be read"):
        open_features(tmp_path / "x.npy")
    np.save(tmp_path / "x.npy", np.array([["a", "b"]]))
    with pytest.raises(InvalidInputError, match="files of numbers"):
        open_features(tmp_path / "x.npy")
    (tmp_path / "y.parquet").write_bytes(b"nothing")
    with pytest.raises(DataFormatError, match=r"y\.parquet cannot be read as Parquet"):
        open_features(tmp_path / "y.parquet", ["emb"])


def test_rows_that_are_not_finite_are_named(tmp_path: Path) -> None:
    bad = X.copy()
    bad[9, 1] = np.nan
    np.save(tmp_path / "x.npy", bad)
    with pytest.raises(InvalidInputError, match="1 NaN"):
        everything(open_features(tmp_path / "x.npy"))


def test_no_files(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"with \.npy or \.parquet files"):
        open_features(tmp_path)
    with pytest.raises(InvalidInputError, match="existing file"):
        open_features(tmp_path / "x.npy")
    with pytest.raises(InvalidInputError, match="fsspec"):
        open_features("nothing://x.npy")
