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
from laplaceconfidence.data.images import CenterSquare, load_image, load_images
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


RAMP = np.linspace(0, 1, 256)[None, :]


def write_pgm(path: Path, values: np.ndarray) -> None:
    path.write_bytes(b"P5\n%d 1\n65535\n" % values.shape[1] + values.astype(">u2").tobytes())


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("ramp.pgm", np.rint(RAMP * 65535).astype(np.uint16)),
        ("ramp.png", np.rint(RAMP * 65535).astype(np.uint16)),
        ("ramp.tif", np.rint(RAMP * 65535).astype(np.uint16)),
        ("ramp.tif", np.rint(RAMP * 2e9 - 1e9).astype(np.int32)),
        ("ramp.tif", RAMP.astype(np.float32)),
        ("ramp.tif", (RAMP * 3000 - 1000).astype(np.float32)),
    ],
    ids=["16-bit PGM", "16-bit PNG", "16-bit TIFF", "32-bit TIFF", "float TIFF", "float TIFF of any range"],
)
def test_all_gray_levels_of_deep_images_are_kept(tmp_path: Path, name: str, values: np.ndarray) -> None:
    if name.endswith(".pgm"):
        write_pgm(tmp_path / name, values)
    else:
        saved(tmp_path, values, name)
    assert load_image(tmp_path / name)[0, :, 0].tolist() == list(range(256))


def test_deep_images_of_a_fixed_range_keep_their_brightness(tmp_path: Path) -> None:
    dark = np.array([[0, 257 * 10, 257 * 20]], dtype=np.uint16)
    write_pgm(tmp_path / "dark.pgm", dark)
    for path in (tmp_path / "dark.pgm", saved(tmp_path, dark), saved(tmp_path, dark, "dark.tif")):
        assert load_image(path)[0, :, 0].tolist() == [0, 10, 20]
    floats = (dark / 65535).astype(np.float32)
    assert load_image(saved(tmp_path, floats, "float.tif"))[0, :, 0].tolist() == [0, 10, 20]


@pytest.mark.parametrize(
    ("values", "gray"),
    [
        ([[np.nan, -5.0, 5.0, np.inf, -np.inf]], [0, 0, 255, 255, 0]),
        ([[7.0, 7.0]], [0, 0]),
        ([[np.nan, np.nan]], [0, 0]),
    ],
)
def test_floats_that_cannot_be_scaled_are_black_or_white(
    tmp_path: Path, values: list[list[float]], gray: list[int]
) -> None:
    path = saved(tmp_path, np.array(values, dtype=np.float32), "image.tif")
    assert load_image(path)[0, :, 0].tolist() == gray


def test_white_is_zero_where_the_file_says_so(tmp_path: Path) -> None:
    path = saved(tmp_path, np.array([[0, 65535]], dtype=np.uint16), "image.tif")
    black, white = (struct.pack("<HHIHH", 262, 3, 1, kind, 0) for kind in (1, 0))  # the meaning of zero
    assert path.read_bytes().count(black) == 1
    path.write_bytes(path.read_bytes().replace(black, white))
    assert load_image(path)[0, :, 0].tolist() == [255, 0]


def test_unsigned_integers_do_not_wrap(tmp_path: Path) -> None:
    values = np.array([[0, 2**31, 2**32 - 1]], dtype=np.uint32)
    path = saved(tmp_path, values.view(np.int32), "image.tif")
    signed, unsigned = (struct.pack("<HHIHH", 339, 3, 1, kind, 0) for kind in (2, 1))  # the sample format
    assert path.read_bytes().count(signed) == 1
    path.write_bytes(path.read_bytes().replace(signed, unsigned))
    assert load_image(tmp_path / "image.tif")[0, :, 0].tolist() == [0, 128, 255]


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


def test_a_center_square_keeps_the_proportions(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (30, 50, 3), dtype=np.uint8)
    for name, picture in (("wide.png", pixels), ("tall.png", pixels.transpose(1, 0, 2))):
        Image.fromarray(np.ascontiguousarray(picture)).save(tmp_path / name)
        found = load_image(tmp_path / name, CenterSquare(12))
        whole = Image.fromarray(np.ascontiguousarray(picture))
        width, height = (20, 12) if name == "wide.png" else (12, 20)
        resized = np.asarray(whole.resize((width, height), Image.Resampling.BILINEAR))
        top, left = (height - 12) // 2, (width - 12) // 2
        np.testing.assert_array_equal(found, resized[top : top + 12, left : left + 12])
    np.testing.assert_array_equal(
        load_image(tmp_path / "wide.png", 12),
        np.asarray(Image.fromarray(pixels).resize((12, 12), Image.Resampling.BILINEAR)),
    )
