"""Decoding images: every mode becomes RGB bytes; whatever cannot be decoded is named."""

import struct
import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from laplaceconfidence.data import images
from laplaceconfidence.data.images import load_image, load_images
from laplaceconfidence.exceptions import DataFormatError, InvalidInputError


def saved(folder: Path, pixels: np.ndarray, name: str = "image.png") -> Path:
    Image.fromarray(pixels).save(folder / name)
    return folder / name


def png_of_size(width: int, height: int) -> bytes:
    """A PNG of a few bytes that claims any size."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(b"")), (b"IEND", b"")]
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + body


def test_colors_come_through(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    np.testing.assert_array_equal(load_image(saved(tmp_path, pixels)), pixels)


@pytest.mark.parametrize("mode", ["L", "1", "P", "RGBA", "CMYK", "LA"])
def test_every_mode_becomes_rgb(tmp_path: Path, mode: str) -> None:
    name = "image.tif" if mode == "CMYK" else "image.png"
    Image.new("RGB", (4, 3), (255, 255, 255)).convert(mode).save(tmp_path / name)
    image = load_image(tmp_path / name)
    assert image.shape == (3, 4, 3)
    assert image.dtype == np.uint8
    assert (image == 255).all()


def test_sixteen_bits_are_scaled_and_not_cut_off(tmp_path: Path) -> None:
    deep = np.array([[0, 256, 32768, 65535]], dtype=np.uint16)
    assert load_image(saved(tmp_path, deep))[0, :, 0].tolist() == [0, 1, 128, 255]


def test_images_are_turned_upright(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned by 90 degrees
    Image.new("RGB", (8, 4)).save(tmp_path / "image.jpg", exif=exif)
    assert load_image(tmp_path / "image.jpg").shape == (8, 4, 3)


def test_many_images_at_one_size(tmp_path: Path) -> None:
    paths = [saved(tmp_path, np.full((4, 4, 3), value, np.uint8), f"{value}.png") for value in (0, 100, 200)]
    stacked = load_images(paths)
    assert stacked.shape == (3, 4, 4, 3)
    assert stacked[:, 0, 0, 0].tolist() == [0, 100, 200]
    assert load_images(paths, size=2).shape == (3, 2, 2, 3)
    assert load_images(paths, size=(2, 5)).shape == (3, 2, 5, 3)
    assert load_image(paths[1], size=(1, 1)).tolist() == [[[100, 100, 100]]]


def test_images_of_different_sizes_need_a_size(tmp_path: Path) -> None:
    paths = [
        saved(tmp_path, np.zeros((4, 4, 3), np.uint8), "a.png"),
        saved(tmp_path, np.zeros((2, 3, 3), np.uint8), "b.png"),
    ]
    with pytest.raises(InvalidInputError, match=r"'size' .*a.png has 4 x 4 pixels, .*b.png has 3 x 2"):
        load_images(paths)
    assert load_images(paths, size=2).shape == (2, 2, 2, 3)


def test_sizes_and_paths_are_checked(tmp_path: Path) -> None:
    path = saved(tmp_path, np.zeros((4, 4, 3), np.uint8))
    with pytest.raises(InvalidInputError, match=r"'size' parameter must be an integer of at least 1. Got 0"):
        load_image(path, size=0)
    with pytest.raises(InvalidInputError, match="'paths' parameter must be at least one path"):
        load_images([])


@pytest.mark.parametrize("side", [10_000, 30_000])
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_an_image_that_would_fill_the_memory_is_refused(tmp_path: Path, side: int) -> None:
    (tmp_path / "bomb.png").write_bytes(png_of_size(side, side))
    with pytest.raises(DataFormatError, match=r"bomb.png (has 10000 x 10000 pixels|is too large)"):
        load_image(tmp_path / "bomb.png")


def test_the_limit_is_in_pixels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "MAX_PIXELS", 12)
    load_image(saved(tmp_path, np.zeros((3, 4, 3), np.uint8)))
    with pytest.raises(DataFormatError, match="4 x 4 pixels, more than the 12"):
        load_image(saved(tmp_path, np.zeros((4, 4, 3), np.uint8)))


@given(cut=st.floats(0, 0.9), suffix=st.sampled_from(["png", "jpg", "gif", "bmp", "tif", "webp"]))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_truncated_images_are_refused_or_read(tmp_path: Path, cut: float, suffix: str) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    path = saved(tmp_path, pixels, f"image.{suffix}")
    content = path.read_bytes()
    path.write_bytes(content[: int(cut * len(content))])
    with suppress(DataFormatError):
        assert load_image(path).shape == (32, 32, 3)  # some formats end where the last whole row does


def test_broken_and_missing_files_are_named(tmp_path: Path) -> None:
    path = saved(tmp_path, np.zeros((32, 32, 3), np.uint8))
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(DataFormatError, match=r"image.png cannot be decoded: .* Replace or remove the file"):
        load_image(path)
    with pytest.raises(DataFormatError, match=r"nowhere.png cannot be decoded"):
        load_image(tmp_path / "nowhere.png")
