"""Folders of images: which classes and ids they give, and what is said about those that give none."""

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from laplaceconfidence.data.image_files import decode_images
from laplaceconfidence.data.readers import read_dataset
from laplaceconfidence.exceptions import DataFormatError, InvalidInputError, LaplaceConfidenceWarning


def touch(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")  # readers do not decode
    return folder


def test_one_folder_a_class(tmp_path: Path) -> None:
    touch(
        tmp_path,
        "dog/2.png",
        "dog/10.JPG",
        "cat/deep/er/a.webp",
        "cat/b.jpeg",
        "cat/notes.txt",
        "dog/.hidden.png",
    )
    touch(tmp_path, ".git/x.png", "README.md")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = read_dataset(tmp_path)
    assert data.class_names == ("cat", "dog")
    assert data.sample_ids.tolist() == ["cat/b.jpeg", "cat/deep/er/a.webp", "dog/10.JPG", "dog/2.png"]
    assert data.labels.tolist() == [0, 0, 1, 1]
    assert data.source_kind == "image"
    assert data.sources is not None
    assert data.sources.tolist() == [str(tmp_path / name) for name in data.sample_ids]
    assert data.features is None


def test_paths_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, "images/cat/1.png", "images/dog/2.png")
    monkeypatch.chdir(tmp_path)
    data = read_dataset("images")
    assert data.sources is not None
    assert data.sources.tolist() == [str(tmp_path / "images/cat/1.png"), str(tmp_path / "images/dog/2.png")]


def test_features_come_from_elsewhere(tmp_path: Path) -> None:
    touch(tmp_path / "images", "cat/1.png", "dog/2.png")
    np.save(tmp_path / "embeddings.npy", np.eye(2))
    features: Any
    for features in (tmp_path / "embeddings.npy", str(tmp_path / "embeddings.npy"), np.eye(2)):
        np.testing.assert_array_equal(
            read_dataset(tmp_path / "images", features=features).features, np.eye(2)
        )
    with pytest.raises(InvalidInputError, match="'features' has 3, 'labels' has 2"):
        read_dataset(tmp_path / "images", features=np.eye(3))
    with pytest.raises(InvalidInputError, match=r"'features' parameter must be a path to an .npy file"):
        read_dataset(tmp_path / "images", features="embedding")


def test_a_folder_may_hold_images_without_a_label(tmp_path: Path) -> None:
    touch(tmp_path, "cat/1.png", "unsorted/2.png")
    data = read_dataset(tmp_path, missing_label="unsorted")
    assert data.class_names == ("cat",)
    assert data.labels.tolist() == [0, -1]
    assert data.labels_as_written().tolist() == ["cat", "unsorted"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "holds neither sub-folders nor images. An image folder has one sub-folder per class"),
        (
            ["1.png", "2.png"],
            "holds 2 images but no sub-folders. An image folder has one sub-folder per class",
        ),
        (["cat/notes.txt", "dog/x.bin"], r"has 2 sub-folders and no image in any of them \(.bmp, "),
        (
            ["train/cat/1.png", "test/cat/2.png"],
            r"are splits \(test, train\) and not classes: read one of them",
        ),
    ],
)
def test_folders_of_another_layout(tmp_path: Path, names: list[str], message: str) -> None:
    touch(tmp_path, *names)
    with pytest.raises(DataFormatError, match=message):
        read_dataset(tmp_path)


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    touch(tmp_path, "cat/1.png", "dog/notes.txt", "stray.png")
    with pytest.warns(LaplaceConfidenceWarning) as caught:
        data = read_dataset(tmp_path)
    said = [str(warning.message) for warning in caught]
    assert any("1 sub-folders without images, which are ignored: dog." in text for text in said)
    assert any("1 images outside the sub-folders, which are left out: stray.png." in text for text in said)
    assert caught[0].filename == __file__
    assert data.class_names == ("cat",)


def test_options_that_mean_nothing_here(tmp_path: Path) -> None:
    touch(tmp_path, "cat/1.png")
    with pytest.raises(
        InvalidInputError, match=r"'label' parameter must be left out for an image folder. Got 'y'"
    ):
        read_dataset(tmp_path, label="y")


def test_real_images_can_be_loaded_from_their_sources(tmp_path: Path) -> None:
    from laplaceconfidence.data.images import load_images

    (tmp_path / "cat").mkdir()
    Image.fromarray(np.full((4, 6, 3), 99, np.uint8)).save(tmp_path / "cat" / "1.png")
    data = read_dataset(tmp_path)
    assert data.sources is not None
    assert load_images(data.sources.tolist()).tolist() == np.full((1, 4, 6, 3), 99).tolist()


def test_what_is_left_out_is_counted_and_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(
        tmp_path / "data",
        "cat/1.jfif",
        "cat/2.heic",
        "cat/deep/3.HEIC",
        "dog/4.png",
        "dog/5.avif",
        "dog/notes.txt",
    )
    touch(tmp_path / "data", "dog/locked/6.png", "locked/7.png")
    touch(tmp_path / "elsewhere", "8.png")
    (tmp_path / "data" / "cat" / "linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "data" / "cat" / "9.png").symlink_to(tmp_path / "nowhere.png")
    scandir = os.scandir

    def refuse_locked(path: Any) -> Any:  # permissions do not stop root
        if Path(path).name == "locked":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse_locked)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data = read_dataset(tmp_path / "data")
    assert data.sample_ids.tolist() == ["cat/1.jfif", "dog/4.png"]
    notes = [str(warning.message).removeprefix(f"{tmp_path / 'data'} has ") for warning in caught]
    assert notes == [
        "3 images in formats that are not supported (.avif: 1, .heic: 2; convert them to PNG or JPEG); "
        "they are left out: cat/2.heic, cat/deep/3.HEIC, dog/5.avif.",
        "2 sub-folders that cannot be read (check their permissions); they are left out: dog/locked, locked.",
        "1 sub-folders that are symbolic links, which are not followed; they are left out: cat/linked.",
        "1 symbolic links that lead to no file; they are left out: cat/9.png.",
    ]


def test_a_folder_of_other_formats_says_so(tmp_path: Path) -> None:
    touch(tmp_path, "cat/1.heic", "dog/2.heic")
    with pytest.raises(DataFormatError, match=r"no image in any of them .* \(\.heic: 2; convert"):
        read_dataset(tmp_path)


def test_jfif_is_jpeg(tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    Image.new("RGB", (4, 4), (200, 0, 0)).save(tmp_path / "cat" / "1.jfif", "JPEG")
    decoded, bad = decode_images(read_dataset(tmp_path))
    assert decoded.images is not None
    assert not bad
