"""Decoding of image files, with a limit on their size in memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import ByteImages
from laplaceconfidence.exceptions import DataFormatError, InvalidInputError
from laplaceconfidence.validation import check_integer, must_be

MAX_PIXELS = 64_000_000
"""Larger images are refused: a file of a few bytes may claim any size."""

# Common formats only. Pillow supports more, some of which run other programs.
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")

_TIFF_BITS, _TIFF_PHOTOMETRIC, _TIFF_SAMPLE_FORMAT, _UNSIGNED = 258, 262, 339, 1


class CenterSquare(int):
    """A size of images that keep their proportions: the side of the center square.

    The shorter side of an image is resized to it, and the ends of the longer side are cut off. A plain number
    as size squeezes images into a square instead.
    """


def load_image(path: str | Path | BinaryIO, size: int | tuple[int, int] | None = None) -> ByteImages:
    """Decode an image file; the orientation stored in the file is applied.

    Gray values of 16 bits are scaled from their full range to 8 bits, and so are floats from 0 to 1. Other
    floats and 32-bit integers are scaled from the smallest to the largest value of the image.

    Parameters
    ----------
    path : str, Path or binary file
        The file.
    size : int, CenterSquare, tuple of (int, int) or None, default=None
        Height and width to resize to.

    Returns
    -------
    ndarray of uint8 of shape (height, width, 3)
    """
    upright = _decoded(path)
    if size is not None:
        upright = _resized(upright, size)
    return np.asarray(upright, dtype=np.uint8)


def resized(image: NDArray[Any], size: int | tuple[int, int]) -> NDArray[Any]:
    """Resize an image in memory.

    Parameters
    ----------
    image : ndarray of shape (height, width, channels)
        Numbers of any type.
    size : int or tuple of (int, int)
        Side or (height, width).

    Returns
    -------
    ndarray of shape (height, width, channels)
        uint8 if the image is, else float32.
    """
    from PIL import Image

    channels = [
        Image.fromarray(np.ascontiguousarray(image[..., channel], dtype=_pillow_type(image.dtype)))
        for channel in range(image.shape[2])
    ]
    return np.stack([np.asarray(_resized(channel, size)) for channel in channels], axis=2)


def load_thumbnail(path: str | Path, longest: int) -> ByteImages:
    """Decode an image file and reduce it, if it is larger, to ``longest`` pixels on its longer side.

    Parameters
    ----------
    path : str or Path
        The file.
    longest : int
        Largest number of pixels on the longer side.

    Returns
    -------
    ndarray of uint8 of shape (height, width, 3)
    """
    upright = _decoded(path, longest)
    upright.thumbnail((longest, longest))
    return np.asarray(upright, dtype=np.uint8)


def image_shape(path: str | Path) -> tuple[int, int]:
    """Read the height and width of an image file, without decoding it.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    tuple of (int, int)
        As stored, before the orientation is applied.
    """
    from PIL import Image

    try:
        with Image.open(path, formats=FORMATS) as image:
            return image.height, image.width
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError) as error:
        raise DataFormatError(
            f"The image {path} cannot be decoded: {error}. Replace or remove the file."
        ) from error


def _pillow_type(dtype: np.dtype[Any]) -> Any:
    return np.uint8 if dtype == np.uint8 else np.float32


def _resized(image: Any, size: int | tuple[int, int]) -> Any:
    from PIL import Image

    height, width = _height_and_width(size)
    if isinstance(size, CenterSquare):
        scale = size / min(image.width, image.height)
        image = image.resize(
            (max(size, round(image.width * scale)), max(size, round(image.height * scale))),
            Image.Resampling.BILINEAR,
        )
        left, top = (image.width - size) // 2, (image.height - size) // 2
        return image.crop((left, top, left + size, top + size))
    return image.resize((width, height), Image.Resampling.BILINEAR)


def _decoded(path: str | Path | BinaryIO, longest: int | None = None) -> Any:
    """Decode an RGB image with Pillow; with ``longest``, possibly at a reduced size of at least that."""
    from PIL import Image, ImageOps

    try:
        with Image.open(path, formats=FORMATS) as image:
            if image.width * image.height > MAX_PIXELS:
                raise DataFormatError(
                    f"The image {path} has {image.width} x {image.height} pixels, more than the {MAX_PIXELS} "
                    "that are allowed. Reduce its size."
                )
            if longest is not None:
                image.draft("RGB", (longest, longest))  # JPEG can be decoded at 1/2, 1/4 or 1/8 of its size
            upright: Any = ImageOps.exif_transpose(image)
            if upright.mode.startswith(("I", "F")):  # Pillow would clip the values at 255 instead of scaling
                upright = Image.fromarray(_scaled_to_bytes(image, np.asarray(upright)))
            return upright.convert("RGB")
    except Image.DecompressionBombError as error:
        raise DataFormatError(f"The image {path} is too large to be decoded: {error}") from error
    except (OSError, ValueError, SyntaxError, EOFError) as error:  # what Pillow raises on damaged files
        raise DataFormatError(
            f"The image {path} cannot be decoded: {error}. Replace or remove the file."
        ) from error


def _scaled_to_bytes(image: Any, values: NDArray[Any]) -> ByteImages:
    """Gray values of more than 8 bits as bytes.

    16 bits (12 in some TIFF files) have a fixed range, which is scaled to 0..255, and so have floats if all
    are from 0 to 1. Other floats, 32-bit and signed integers have none: the range of the image is scaled.
    """
    tags = getattr(image, "tag_v2", {})  # of TIFF files only
    bits, sample_format = tags.get(_TIFF_BITS, (16,))[0], tags.get(_TIFF_SAMPLE_FORMAT, (1,))[0]
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format != "TIFF"):
        top = 2**bits - 1
        gray = (np.clip(values, 0, top).astype(np.uint32) * 255 + top // 2) // top
    else:
        if values.dtype == np.int32 and bits == 32 and sample_format == _UNSIGNED:
            values = values.view(np.uint32)
        finite = values[np.isfinite(values)]
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
        if image.mode == "F" and low >= 0 and high <= 1:
            low, high = 0.0, 1.0
        whole = np.nan_to_num(values.astype(np.float64), nan=low, posinf=high, neginf=low)
        gray = np.rint((whole - low) / (high - low or 1.0) * 255)
    if tags.get(_TIFF_PHOTOMETRIC) == 0:  # white is zero; Pillow inverts 8 bits only
        gray = 255 - gray
    return np.asarray(gray, dtype=np.uint8)


def load_images(paths: Sequence[str | Path], size: int | tuple[int, int] | None = None) -> ByteImages:
    """Decode image files into one array.

    Parameters
    ----------
    paths : sequence of str or Path
        The files.
    size : int, tuple of (int, int) or None, default=None
        Height and width to resize to; ``None`` requires that all images have the same size.

    Returns
    -------
    ndarray of uint8 of shape (n, height, width, 3)
    """
    if len(paths) == 0:
        raise must_be("paths", "at least one path", "none")
    first = load_image(paths[0], size)
    images = np.empty((len(paths), *first.shape), dtype=np.uint8)
    images[0] = first
    for number, path in enumerate(paths[1:], 1):
        image = load_image(path, size)
        if image.shape != first.shape:
            raise InvalidInputError(
                f"The 'size' parameter must be given where images differ in size: {paths[0]} has "
                f"{first.shape[1]} x {first.shape[0]} pixels, {path} has {image.shape[1]} x {image.shape[0]}."
            )
        images[number] = image
    return images


def _height_and_width(size: int | tuple[int, int]) -> tuple[int, int]:
    height, width = size if isinstance(size, tuple) and len(size) == 2 else (size, size)
    return check_integer(height, "size", minimum=1), check_integer(width, "size", minimum=1)
