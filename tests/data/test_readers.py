"""The front door: what goes where, and what is turned away."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laplaceconfidence import NoisyDataset
from laplaceconfidence.data.readers import read_dataset
from laplaceconfidence.exceptions import InvalidInputError


def test_a_data_set_is_given_back() -> None:
    data = NoisyDataset.from_arrays(["a", "b"], np.eye(2))
    assert read_dataset(data) is data
    with pytest.raises(
        InvalidInputError, match=r"'label' parameter must be left out for a NoisyDataset.*none"
    ):
        read_dataset(data, label="y")
    with pytest.raises(InvalidInputError, match="'split' parameter must be left out for 'digits'"):
        read_dataset("digits", split="train")


def test_a_path_is_not_taken_for_the_digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "digits" / "zero").mkdir(parents=True)
    (tmp_path / "digits" / "zero" / "1.png").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    assert len(read_dataset(Path("digits"))) == 1
    assert len(read_dataset("./digits")) == 1
    assert len(read_dataset("digits")) == 1797


@pytest.mark.parametrize("source", ["nowhere.csv", Path("nowhere"), "x" * 5000, "a\0b"])
def test_paths_that_do_not_exist(source: Any) -> None:
    with pytest.raises(InvalidInputError, match="'source' parameter must be an existing file or folder"):
        read_dataset(source)


def test_files_of_an_unknown_kind(tmp_path: Path) -> None:
    (tmp_path / "data.docx").write_bytes(b"")
    with pytest.raises(
        InvalidInputError, match=r"a file of a known kind \(.npz, .npy, .csv.*Got '.*data.docx'"
    ):
        read_dataset(tmp_path / "data.docx")


def test_suffixes_in_any_case(tmp_path: Path) -> None:
    with (tmp_path / "DATA.NPZ").open("wb") as file:
        np.savez(file, X=np.eye(2), y=[0, 1])
    assert len(read_dataset(tmp_path / "DATA.NPZ")) == 2


@pytest.mark.parametrize("source", [None, 3, [1, 2], {}, object()])
def test_sources_of_an_unknown_kind(source: Any) -> None:
    with pytest.raises(InvalidInputError, match="'source' parameter must be one of a path, a frame"):
        read_dataset(source)


def test_the_shared_embeddings_where_they_are() -> None:
    path = Path("/work/shared/data/cifar10_embeddings.npz")
    if not path.exists():
        pytest.skip("the shared embeddings are not on this machine")
    data = read_dataset(path, features="train_features", label="train_labels")
    assert data.features is not None
    assert data.features.shape == (10_000, 1280)
    assert data.n_classes == 10
