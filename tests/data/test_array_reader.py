"""Arrays in .npz and .npy files, and pairs of arrays."""

import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laplaceconfidence.data.readers import read_dataset
from laplaceconfidence.exceptions import DataFormatError, InvalidInputError

FEATURES = np.arange(12, dtype=np.float32).reshape(4, 3)
LABELS = np.array([7, 3, 7, 7])


@pytest.mark.parametrize("features", ["features", "X", "embeddings"])
@pytest.mark.parametrize("label", ["labels", "label", "y"])
def test_npz_with_usual_names(tmp_path: Path, features: str, label: str) -> None:
    np.savez(tmp_path / "data.npz", **{features: FEATURES, label: LABELS})
    data = read_dataset(tmp_path / "data.npz")
    np.testing.assert_array_equal(data.features, FEATURES)
    assert data.labels.tolist() == [1, 0, 1, 1]
    assert data.class_names == ("3", "7")


def test_npz_with_everything(tmp_path: Path) -> None:
    np.savez_compressed(
        tmp_path / "data.npz",
        X=FEATURES,
        y=np.array([0, 1, -1, 2]),
        ids=np.array([10, 11, 12, 13]),
        class_names=np.array(["cat", "dog", "emu"]),
        texts=np.array(["a", "b", "c", "d"]),
        true_labels=np.array([0, 1, 1, 2]),
        images=np.zeros((4, 5, 6), np.uint8),
    )
    data = read_dataset(str(tmp_path / "data.npz"))
    assert data.class_names == ("cat", "dog", "emu")
    assert data.labels.tolist() == [0, 1, -1, 2]
    assert data.sample_ids.tolist() == ["10", "11", "12", "13"]
    assert data.source_kind == "text"
    assert data.sources is not None
    assert data.sources.tolist() == ["a", "b", "c", "d"]
    assert data.true_labels is not None
    assert data.true_labels.tolist() == [0, 1, 1, 2]
    assert data.images is not None
    assert data.images.shape == (4, 5, 6, 1)


def test_npz_with_other_names(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "data.npz",
        **{"train_features": FEATURES, "train_labels": LABELS, "key": ["a", "b", "c", "d"], "truth": LABELS},
        train_images=np.zeros((4, 2, 2, 3), np.uint8),
        picture=["1.png", "2.png", "3.png", "4.png"],
    )
    data = read_dataset(
        tmp_path / "data.npz",
        features="train_features",
        label="train_labels",
        id="key",
        path="picture",
        true_label="truth",
        images="train_images",
        missing_label=3,
    )
    assert data.labels.tolist() == [0, -1, 0, 0]
    assert data.source_kind == "image"
    assert data.images is not None
    assert data.sample_ids.tolist() == ["a", "b", "c", "d"]


def test_npz_with_images_alone_is_enough(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", images=np.zeros((4, 5, 6, 3), np.uint8), labels=LABELS)
    assert read_dataset(tmp_path / "data.npz").features is None


def test_features_and_labels_may_lie_beside_an_npz(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", images=np.zeros((4, 5, 6, 3), np.uint8))
    np.save(tmp_path / "features.npy", FEATURES)
    data = read_dataset(tmp_path / "data.npz", features=str(tmp_path / "features.npy"), labels=LABELS)
    np.testing.assert_array_equal(data.features, FEATURES)
    assert data.labels.tolist() == [1, 0, 1, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"label": "lable"},
            r"'label' parameter must be one of the keys of .*data.npz. Got 'lable'.*'a', 'b'",
        ),
        ({"label": "b", "features": "c"}, "'features' parameter must be one of the keys .*'c'.*'a', 'b'"),
        (
            {},
            "'label' parameter must be given, as .* none of the usual keys 'label', 'labels', 'y'.*'a', 'b'",
        ),
        ({"label": "b"}, "labels but no features, images, texts or paths .*Existing keys: 'a', 'b'"),
        ({"label": "b", "labels": [1]}, "'label' parameter must be left out where 'labels'"),
        (
            {"label": "b", "split": "train"},
            "'split' parameter must be left out for an .npz file. Got 'train'",
        ),
        ({"label": "b", "text": "a", "path": "a"}, "'path' parameter must be left out if 'text' is given"),
        ({"label": "a", "features": "a"}, "'labels' parameter must be one-dimensional"),
        ({"label": "b", "features": "a", "labels": None, "id": "a"}, "'ids'"),
        (
            {"label": "b", "features": "nowhere.npy"},
            "'features' parameter must be a path to an existing file",
        ),
    ],
)
def test_names_that_are_not_there(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    np.savez(tmp_path / "data.npz", a=FEATURES + 0.5, b=LABELS)
    with pytest.raises(InvalidInputError, match=message):
        read_dataset(tmp_path / "data.npz", **options)


@pytest.mark.parametrize("form", ["npy", "txt", "csv", "csv with heading", "array"])
def test_npy_with_labels_beside_it(tmp_path: Path, form: str) -> None:
    np.save(tmp_path / "X.npy", FEATURES)
    np.save(tmp_path / "y.npy", LABELS)
    (tmp_path / "y.txt").write_text("7\n3\n7\n7\n")
    (tmp_path / "y.csv").write_text("7\n3\n7\n7")
    (tmp_path / "headed.csv").write_text("label\r\n7\r\n3\r\n7\r\n7\r\n")
    labels: Any = {
        "npy": tmp_path / "y.npy",
        "txt": str(tmp_path / "y.txt"),
        "csv": tmp_path / "y.csv",
        "csv with heading": tmp_path / "headed.csv",
        "array": LABELS,
    }[form]
    data = read_dataset(tmp_path / "X.npy", labels=labels)
    assert data.labels.tolist() == [1, 0, 1, 1]
    assert data.class_names == ("3", "7")


def test_npy_without_labels_says_what_is_missing(tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", FEATURES)
    with pytest.raises(
        InvalidInputError, match=r"'labels' parameter must be a path to .*holds the features only"
    ):
        read_dataset(tmp_path / "X.npy")
    with pytest.raises(InvalidInputError, match="'labels' parameter must be a path to an existing file"):
        read_dataset(tmp_path / "X.npy", labels="nowhere.txt")
    with pytest.raises(InvalidInputError, match="'features' has 4, 'labels' has 2"):
        read_dataset(tmp_path / "X.npy", labels=[0, 1])


@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_pickled_arrays_are_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"data.{suffix}"
    objects = np.array([{"a": 1}, None], dtype=object)
    if suffix == "npy":
        np.save(path, objects)
    else:
        np.savez(path, features=FEATURES[:2], labels=objects)
    with pytest.raises(DataFormatError, match=f"data.{suffix} holds pickled Python objects.*np.savez"):
        read_dataset(path, labels=[0, 1] if suffix == "npy" else None)


@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_a_pickle_under_another_name_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"data.{suffix}"
    path.write_bytes(pickle.dumps({"features": FEATURES}))
    with pytest.raises(DataFormatError, match="pickled"):
        read_dataset(path, labels=[0])


@pytest.mark.parametrize("suffix", [".pkl", ".pickle", ".pt", ".pth", ".joblib"])
def test_files_that_are_pickles_by_name_are_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"data{suffix}"
    path.write_bytes(b"anything")
    with pytest.raises(DataFormatError, match="is a pickle, which is never loaded"):
        read_dataset(path)


def test_archives_and_arrays_under_each_others_names(tmp_path: Path) -> None:
    np.save(tmp_path / "array.npy", FEATURES)
    np.savez(tmp_path / "archive.npz", X=FEATURES, y=LABELS)
    (tmp_path / "array.npy").rename(tmp_path / "array.npz")
    (tmp_path / "archive.npz").rename(tmp_path / "archive.npy")
    with pytest.raises(DataFormatError, match=r"rename it to .npy"):
        read_dataset(tmp_path / "array.npz")
    with pytest.raises(DataFormatError, match=r"rename it to .npz"):
        read_dataset(tmp_path / "archive.npy", labels=LABELS)


@given(cut=st.floats(0, 0.999), flip=st.none() | st.floats(0, 0.999), suffix=st.sampled_from(["npy", "npz"]))
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_files_never_end_in_a_strange_error(
    tmp_path: Path, cut: float, flip: float | None, suffix: str
) -> None:
    path = tmp_path / f"data.{suffix}"
    if suffix == "npy":
        np.save(path, FEATURES)
    else:
        np.savez_compressed(path, X=FEATURES, y=LABELS)
    content = bytearray(path.read_bytes())
    if flip is None:
        path.write_bytes(content[: int(cut * len(content))])
        with pytest.raises(DataFormatError, match=f"data.{suffix}"):
            read_dataset(path, labels=LABELS)
        return
    content[int(flip * len(content))] ^= 0xFF
    path.write_bytes(content)
    with suppress(DataFormatError, InvalidInputError):
        # Numbers may change unnoticed: an .npy file has no checksum.
        assert len(read_dataset(path, labels=LABELS)) == 4


@pytest.mark.parametrize(
    "labels", [["a", "b", "a", "c"], ("a", "b", "a", "c"), np.array(["a", "b", "a", "c"])]
)
def test_a_pair_of_features_and_labels(labels: Any) -> None:
    data = read_dataset((FEATURES.tolist(), labels))
    assert data.labels.tolist() == [0, 1, 0, 2]
    np.testing.assert_array_equal(data.features, FEATURES)


def test_a_pair_of_tensors() -> None:
    torch = pytest.importorskip("torch")
    features = torch.tensor(FEATURES, requires_grad=True).to(torch.bfloat16)
    data = read_dataset((features, torch.tensor(LABELS)), missing_label=3)
    assert data.labels.tolist() == [0, -1, 0, 0]
    np.testing.assert_array_equal(data.features, FEATURES)


def test_a_tuple_of_another_size_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"'source' parameter must be a pair .*tuple of 3"):
        read_dataset((FEATURES, LABELS, LABELS))
    with pytest.raises(InvalidInputError, match="'label' parameter must be left out for a pair"):
        read_dataset((FEATURES, LABELS), label="y")
