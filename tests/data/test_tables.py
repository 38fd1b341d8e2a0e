"""Tables of every make give the same data set: CSV, TSV, Parquet, pandas frames, Hugging Face datasets."""

import gzip
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laplaceconfidence import NoisyDataset, audit
from laplaceconfidence.data.readers import read_dataset
from laplaceconfidence.exceptions import DataFormatError, InvalidInputError

Maker = Callable[[pd.DataFrame, Path], Any]


def to_csv(frame: pd.DataFrame, folder: Path) -> Path:
    lists = frame.map(lambda cell: json.dumps(np.asarray(cell).tolist()) if isinstance(cell, list) else cell)
    lists.to_csv(folder / "data.csv", index=False)
    return folder / "data.csv"


def to_gzipped_tsv(frame: pd.DataFrame, folder: Path) -> Path:
    csv = pd.read_csv(to_csv(frame, folder), dtype=str, keep_default_na=False)
    csv.to_csv(folder / "data.tsv.gz", sep="\t", index=False)
    return folder / "data.tsv.gz"


def to_parquet(frame: pd.DataFrame, folder: Path) -> Path:
    frame.to_parquet(folder / "data.parquet")
    return folder / "data.parquet"


def to_frame(frame: pd.DataFrame, folder: Path) -> pd.DataFrame:
    return frame


def to_huggingface(frame: pd.DataFrame, folder: Path) -> Any:
    return pytest.importorskip("datasets").Dataset.from_pandas(frame, preserve_index=False)


MAKERS = {maker.__name__: maker for maker in (to_csv, to_gzipped_tsv, to_parquet, to_frame, to_huggingface)}


@pytest.fixture(params=list(MAKERS))
def make(request: pytest.FixtureRequest) -> Maker:
    return MAKERS[request.param]


def animals() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "size": [1.5, 2.5, 3.5],
            "legs": [4, 2, 4],
            "label": ["cat", "emu", "cat"],
            "color": ["red", "blue", "red"],
            "tame": [True, False, True],
        }
    )


ANIMAL_FEATURES = ["size", "legs", "tame"]


def test_named_numbers_are_features(make: Maker, tmp_path: Path) -> None:
    frame = animals().assign(id=[30, 10, 20], true_label=["cat", "emu", "emu"])
    data = read_dataset(make(frame, tmp_path), features=ANIMAL_FEATURES)
    np.testing.assert_array_equal(data.features, [[1.5, 4, 1], [2.5, 2, 0], [3.5, 4, 1]])
    assert data.feature_columns == ("size", "legs", "tame")
    assert data.class_names == ("cat", "emu")
    assert data.labels.tolist() == [0, 1, 0]
    assert data.sample_ids.tolist() == ["30", "10", "20"]
    assert data.true_labels is not None
    assert data.true_labels.tolist() == [0, 1, 1]


def test_columns_by_name(make: Maker, tmp_path: Path) -> None:
    frame = animals().rename(columns={"label": "kind"}).assign(key=["007", "8", "9"], note=["a", None, "NA"])
    data = read_dataset(make(frame, tmp_path), label="kind", features=["legs"], id="key", text="note")
    np.testing.assert_array_equal(data.features, [[4], [2], [4]])
    assert data.sample_ids.tolist() == ["007", "8", "9"]
    assert data.source_kind == "text"
    assert data.sources is not None
    assert data.sources.tolist() == ["a", "", "NA"]


def test_columns_by_pattern(make: Maker, tmp_path: Path) -> None:
    frame = animals().assign(emb_0=[1.0, 2.0, 3.0], emb_1=[4.0, 5.0, 6.0])
    data = read_dataset(make(frame, tmp_path), features="emb_*")
    np.testing.assert_array_equal(data.features, [[1, 4], [2, 5], [3, 6]])


@pytest.mark.parametrize("name", ["features", "embedding", "vector"])
def test_one_column_of_lists(make: Maker, tmp_path: Path, name: str) -> None:
    lists = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    frame = pd.DataFrame({"label": ["a", "b", "a"], name: lists, "note": ["x", "y", "z"]})
    source = make(frame, tmp_path)
    for features in (None, name):
        np.testing.assert_array_equal(read_dataset(source, features=features).features, lists)


def test_nested_lists_are_laid_out_flat(make: Maker, tmp_path: Path) -> None:
    frame = pd.DataFrame({"label": ["a", "b"], "features": [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]})
    np.testing.assert_array_equal(read_dataset(make(frame, tmp_path)).features, [[1, 2, 3, 4], [5, 6, 7, 8]])


def test_features_beside_a_table(make: Maker, tmp_path: Path) -> None:
    np.save(tmp_path / "embeddings.npy", np.eye(3))
    frame = pd.DataFrame({"label": ["a", "b", "a"], "text": ["x", "y", "z"]})
    for features in (tmp_path / "embeddings.npy", str(tmp_path / "embeddings.npy"), np.eye(3)):
        data = read_dataset(make(frame, tmp_path), features=features)
        np.testing.assert_array_equal(data.features, np.eye(3))
        assert data.source_kind == "text"


@pytest.mark.parametrize(
    ("labels", "names", "codes"),
    [
        ([10, 9, 10], ("9", "10"), [1, 0, 1]),
        (["b", None, "a"], ("a", "b"), [1, -1, 0]),
        (pd.array([10, None, 9], dtype="Int64"), ("9", "10"), [1, -1, 0]),
        (["b", "", "a"], ("a", "b"), [1, -1, 0]),
        (["None", "NA", "a"], ("NA", "None", "a"), [1, 0, 2]),
    ],
)
def test_labels_and_gaps(
    make: Maker, tmp_path: Path, labels: Any, names: tuple[str, ...], codes: list[int]
) -> None:
    data = read_dataset(make(pd.DataFrame({"x": [1.0, 2.0, 3.0], "label": labels}), tmp_path), features="x")
    assert data.class_names == names
    assert data.labels.tolist() == codes
    for before, after in zip(labels, data.labels_as_written(), strict=True):
        gone = pd.isna(before) or before == ""
        assert (pd.isna(after) or after == "") if gone else after == before
        assert gone or isinstance(after, (str, int, np.integer))  # integers do not turn into floats


def test_paths_start_at_the_table(tmp_path: Path) -> None:
    frame = pd.DataFrame({"y": [0, 1, 0], "file": ["a/1.png", "/abs/2.png", "https://example.org/3.png"]})
    expected = [str(tmp_path / "a/1.png"), "/abs/2.png", "https://example.org/3.png"]
    for maker in (to_csv, to_parquet):
        data = read_dataset(maker(frame, tmp_path), path="file")
        assert data.sources is not None
        assert data.sources.tolist() == expected
        assert data.source_kind == "image"
    in_memory = read_dataset(frame, path="file")
    assert in_memory.sources is not None
    assert in_memory.sources.tolist() == frame["file"].tolist()


def test_the_index_of_a_frame_names_its_rows() -> None:
    assert read_dataset(animals(), features="size").ids is None
    assert read_dataset(animals().set_axis(["p", "q", "r"]), features="size").sample_ids.tolist() == [
        "p",
        "q",
        "r",
    ]
    assert read_dataset(animals().iloc[[2, 0]], features="size").sample_ids.tolist() == ["2", "0"]
    assert read_dataset(animals().set_axis(["p", "p", "r"]), features="size").ids is None


def test_ids_of_something_else_are_not_taken_for_ids(make: Maker, tmp_path: Path) -> None:
    source = make(animals().assign(id=[1, 1, 2]), tmp_path)
    assert read_dataset(source, features="size").ids is None
    with pytest.raises(
        InvalidInputError, match=r"'ids' parameter must be different for every sample. Got '1'"
    ):
        read_dataset(source, id="id", features="size")


def test_small_numbers_stay_small() -> None:
    frame = pd.DataFrame({"a": np.ones(2, np.float32), "b": np.ones(2, np.int8), "label": [0, 1]})
    assert read_dataset(frame, features=["a", "b"]).features.dtype == np.float32  # type: ignore[union-attr]
    wider = read_dataset(frame.assign(a=[0.1, 0.2]), features=["a", "b"])
    assert wider.features.dtype == np.float64  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (
            {},
            {"label": "lable"},
            "'label' parameter must be one of the columns of .* Got 'lable'.*'size', 'legs'",
        ),
        ({}, {"id": "key"}, "'id' parameter must be one of the columns"),
        ({}, {"text": "key"}, "'text' parameter must be one of the columns"),
        ({}, {"true_label": "key"}, "'true_label' parameter must be one of the columns"),
        ({}, {"features": ["size", "key"]}, "'features' parameter must be one of the columns .*Got 'key'"),
        ({}, {"features": []}, r"'features' parameter must be a list of different columns. Got \[\]"),
        ({}, {"features": ["size", "size"]}, "'features' parameter must be a list of different columns"),
        ({}, {"features": "emb_*"}, r"'features' parameter must be a column .*pattern.*Got 'emb_\*'"),
        (
            {},
            {"features": ["size", "label"]},
            "'features' parameter must be columns that are not used for something else",
        ),
        ({}, {"labels": [0, 1, 2]}, "'labels' parameter must be left out for a"),
        ({}, {"images": "size"}, "'images' parameter must be (left out for a|a column of images)"),
        (
            {"size": [None, None, None]},
            {"features": ["legs", "size"]},
            "'features' parameter must be columns that are not empty. Got 'size'",
        ),
        (
            {"size": [1.0, np.inf, 2.0]},
            {"features": ["legs", "size"]},
            "'features' .*finite number in every row. Got 'size'.*infinite in 1 of 3 rows",
        ),
        (
            {"size": ["1.5", "?", "3.5"]},
            {"features": ["legs", "size"]},
            "Got 'size' instead. 1 of its 3 cells are not numbers; the first, in row 1, is '[?]'",
        ),
        (
            {"label": [0.5, 1.5, 2.5]},
            {"features": "size"},
            "'labels' parameter must be strings or integers .*0.5",
        ),
        (
            {"label": [None, None, None]},
            {"features": "size"},
            "'labels' must hold at least one label that is not missing",
        ),
        (
            {"vector": [[1.0], [2.0], [3.0]], "other": [[1.0], [2.0], [3.0]]},
            {},
            r"(?s)'features' parameter must be given.*--features vector.*vector .list., other .list.",
        ),
        (
            {"vector": [[1.0], [2.0, 3.0], [4.0]]},
            {"features": "vector"},
            "'features' .*lists of the same length",
        ),
        (
            {"vector": [[1.0], None, [4.0]]},
            {"features": "vector"},
            "'features' parameter must be a column of lists",
        ),
        (
            {"key": ["a", None, "b"]},
            {"id": "key", "features": "size"},
            "'id' parameter must be a column with an id in every row.*row 1",
        ),
    ],
)
def test_bad_tables(
    make: Maker, tmp_path: Path, change: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        read_dataset(make(animals().assign(**change), tmp_path), **options)


def test_a_table_of_labels_only(make: Maker, tmp_path: Path) -> None:
    source = make(pd.DataFrame({"label": ["a", "b"], "color": ["red", "blue"]}), tmp_path)
    with pytest.raises(InvalidInputError, match=r"labels but no features, images, texts or paths.*'color'"):
        read_dataset(source)


def test_a_table_without_rows(make: Maker, tmp_path: Path) -> None:
    empty = pd.DataFrame({"x": pd.Series([], dtype=float), "label": pd.Series([], dtype=int)})
    with pytest.raises(InvalidInputError, match="'source' parameter must be a table with at least one row"):
        read_dataset(make(empty, tmp_path))


def test_columns_of_the_same_name(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("x,label,label\n1,a,b\n")
    doubled = pd.DataFrame([[1.0, "a", "b"]], columns=["x", "label", "label"])
    for source in (tmp_path / "data.csv", doubled):
        with pytest.raises(InvalidInputError, match=r"columns have different names .*Got 'label'"):
            read_dataset(source)


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"\xff\xfe\x00\x01", b"x,label\n1,a,too,many\n", b'x,label\n1,"a\n']
)
def test_what_is_no_csv(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "data.csv").write_bytes(content)
    with pytest.raises(DataFormatError, match=r"data.csv cannot be read as a table"):
        read_dataset(tmp_path / "data.csv")


def test_lists_that_are_no_json_name_their_row(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text('vector,label\n"[1, 2]",a\n[1 2],b\n')
    with pytest.raises(
        InvalidInputError, match=r"'features' .* written as JSON.*'vector' with '\[1 2\]' in row 1"
    ):
        read_dataset(tmp_path / "data.csv", features="vector")


@given(cut=st.floats(0, 0.99))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_truncated_files_are_refused(tmp_path: Path, cut: float) -> None:
    frame = pd.DataFrame(np.random.default_rng(0).random((50, 3)), columns=list("abc")).assign(label="x")
    to_parquet(frame, tmp_path)
    (tmp_path / "data.csv.gz").write_bytes(gzip.compress(to_csv(frame, tmp_path).read_bytes()))
    for name in ("data.parquet", "data.csv.gz"):
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content[: int(cut * len(content))])
        with pytest.raises(DataFormatError, match=name):
            read_dataset(tmp_path / name)


@given(
    content=st.text(alphabet='ab1.,\n"[]-é\t;', max_size=60) | st.binary(max_size=40),
    suffix=st.sampled_from(["csv", "tsv", "csv.gz", "parquet", "npz", "npy", "tar.gz"]),
)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_content_is_read_or_refused_with_a_message(
    tmp_path: Path, content: str | bytes, suffix: str
) -> None:
    path = tmp_path / f"data.{suffix}"
    path.write_bytes(content if isinstance(content, bytes) else ("x,label\n" + content).encode())
    with suppress(InvalidInputError, DataFormatError):
        assert isinstance(read_dataset(path, labels=[0, 1] if suffix == "npy" else None), NoisyDataset)


class TestHuggingFace:
    datasets = pytest.importorskip("datasets")

    def classified(self, labels: list[int | None]) -> Any:
        kinds = self.datasets.Features(
            {
                "embedding": self.datasets.Array2D((2, 2), "float32"),
                "label": self.datasets.ClassLabel(names=["cat", "dog", "emu"]),
                "coarse": self.datasets.ClassLabel(names=["bird", "mammal"]),
            }
        )
        rows = {"embedding": np.arange(4.0 * len(labels)).reshape(-1, 2, 2), "label": labels}
        return self.datasets.Dataset.from_dict({**rows, "coarse": [0] * len(labels)}, features=kinds)

    def test_classes_bring_their_names(self) -> None:
        data = read_dataset(self.classified([2, 0, -1]))
        assert data.class_names == ("cat", "dog", "emu")
        assert data.labels.tolist() == [2, 0, -1]
        np.testing.assert_array_equal(data.features, np.arange(12).reshape(3, 4))
        assert data.labels_as_written().tolist() == [2, 0, -1]

    def test_gaps_come_back_as_none(self) -> None:
        data = read_dataset(self.classified([2, None, 1]))
        assert data.labels.tolist() == [2, -1, 1]
        assert data.labels_as_written().tolist() == [2, None, 1]

    def test_selected_and_formatted_rows(self) -> None:
        chosen = self.classified([2, 0, 1]).select([2, 0]).with_format("numpy")
        data = read_dataset(chosen)
        assert data.labels.tolist() == [1, 2]
        np.testing.assert_array_equal(data.features, [[8, 9, 10, 11], [0, 1, 2, 3]])

    def test_one_of_several_splits(self) -> None:
        splits = self.datasets.DatasetDict(train=self.classified([0, 1]), test=self.classified([2]))
        assert len(read_dataset(splits, split="test")) == 1
        assert len(read_dataset(self.datasets.DatasetDict(train=self.classified([0, 1])))) == 2
        for split in (None, "dev"):
            with pytest.raises(
                InvalidInputError, match=r"'split' parameter must be one of .*'train', 'test'"
            ):
                read_dataset(splits, split=split)
        with pytest.raises(InvalidInputError, match="'split' parameter must be left out"):
            read_dataset(self.classified([0]), split="train")

    def test_streams_are_refused(self) -> None:
        with pytest.raises(
            InvalidInputError, match="'source' parameter must be a dataset that is not streamed"
        ):
            read_dataset(self.classified([0]).to_iterable_dataset())


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_labels_are_enough_where_the_caller_says_so(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"data{suffix}"
    columns = {"label": np.array(["a", "b", "a"]), "user": np.array([7, 8, 9])}
    if suffix == ".npz":
        np.savez(path, **columns)
    else:
        frame = pd.DataFrame(columns)
        frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path)
    with pytest.raises(InvalidInputError):
        read_dataset(path)
    data = read_dataset(path, labels_only=True)
    assert data.labels.tolist() == [0, 1, 0]
    assert data.features is None
    with pytest.raises(InvalidInputError, match=r"An audit needs features|must be given"):
        audit(data)
