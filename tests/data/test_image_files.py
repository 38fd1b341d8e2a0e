"""Decoding the images of a data set: in order, of one size, and what becomes of those that are broken."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.image_files import decode_images, has_image_files
from laplaceconfidence.data.images import load_image
from laplaceconfidence.data.readers import read_dataset
from laplaceconfidence.exceptions import DataFormatError, InvalidInputError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for label in ("cat", "dog"):
        (tmp_path / label).mkdir()
        for number in range(6):
            pixels = rng.integers(0, 256, (8, 10, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / label / f"{number}.png")
    return tmp_path


def test_small_sets_are_kept_in_memory(folder: Path) -> None:
    data = read_dataset(folder)
    decoded, bad = decode_images(data, n_workers=3)
    assert bad == []
    assert decoded.images is not None
    assert decoded.images.shape == (12, 8, 10, 3)
    assert data.sources is not None
    for row in (0, 7, 11):
        np.testing.assert_array_equal(decoded.images[row], load_image(data.sources[row]))
    assert decoded.sample_ids.tolist() == data.sample_ids.tolist()


def test_large_sets_are_checked_and_stay_files(folder: Path) -> None:
    data = read_dataset(folder)
    decoded, _ = decode_images(data, 4, keep_up_to=100)
    assert decoded.images is None
    assert has_image_files(decoded)
    assert decoded.sample_ids.tolist() == data.sample_ids.tolist()


def test_bad_images_are_named_or_left_out(folder: Path) -> None:
    broken, empty = folder / "cat" / "0.png", folder / "dog" / "3.png"
    broken.write_bytes(broken.read_bytes()[:60])
    empty.write_bytes(b"")
    data = read_dataset(folder)
    with pytest.raises(DataFormatError, match=r"cat/0\.png cannot be decoded.*--skip-bad"):
        decode_images(data)
    for keep in (2**30, 0):
        decoded, bad = decode_images(data, skip_bad=True, keep_up_to=keep)
        assert [image.path for image in bad] == [str(broken), str(empty)]
        assert bad[0].id == "cat/0.png"
        assert "cannot be decoded" in bad[0].reason
        assert len(decoded) == 10
        assert "cat/0.png" not in decoded.sample_ids
        assert decoded.labels.tolist() == [0] * 5 + [1] * 5


def test_sizes_that_differ_need_one(folder: Path) -> None:
    Image.new("RGB", (20, 30)).save(folder / "dog" / "9.png")
    data = read_dataset(folder)
    with pytest.raises(
        InvalidInputError,
        match=r"'image_size' parameter must be given.*cat/0\.png has 10 x 8.*dog/9\.png has 20 x 30",
    ):
        decode_images(data)
    decoded, _ = decode_images(data, (6, 5))
    assert decoded.images is not None
    assert decoded.images.shape == (13, 6, 5, 3)


def test_nothing_left_is_an_error(folder: Path) -> None:
    for path in folder.glob("*/*.png"):
        path.write_bytes(b"")
    with pytest.raises(DataFormatError, match="None of the 12 images can be decoded"):
        decode_images(read_dataset(folder), skip_bad=True)


def test_wrong_parameters(folder: Path) -> None:
    with pytest.raises(InvalidInputError, match="'image_size' parameter must be an integer of at least 1"):
        decode_images(read_dataset(folder), 0)
    with pytest.raises(InvalidInputError, match="one whose sources are paths of images"):
        decode_images(NoisyDataset.from_arrays([0, 1], [[1.0], [2.0]]))
