"""Images in columns as Hugging Face's library stores them: paths if they are files, decoded otherwise."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from laplaceconfidence.arrays import ByteImages
from laplaceconfidence.data.images import load_image
from laplaceconfidence.data.read_options import ReadOptions
from laplaceconfidence.exceptions import DataFormatError
from laplaceconfidence.validation import must_be


@dataclass(frozen=True, slots=True, eq=False)
class ColumnImages:
    """The images of a column, as paths or in memory.

    Attributes
    ----------
    paths : list of str or None
        One path per sample, if every image is a file.
    images : ndarray of uint8 of shape (n, height, width, 3) or None
        The decoded images otherwise.
    """

    paths: list[str] | None = None
    images: ByteImages | None = None


def image_column(columns: Sequence[str], options: ReadOptions, origin: str) -> str | None:
    """The column of a table that holds the images.

    Parameters
    ----------
    columns : sequence of str
        The columns of images.
    options : ReadOptions
        ``images`` names the column. Without it the only column of images is used, unless ``text`` or ``path``
        is set.
    origin : str
        Name of the table in error messages.

    Returns
    -------
    str or None
        ``None`` if there is none.
    """
    if options.images is not None:
        if options.images not in columns:
            listed = ", ".join(map(repr, columns)) or "none"
            raise must_be("images", f"a column of images of {origin} ({listed})", options.images)
        return str(options.images)
    if options.text is not None or options.path is not None or not columns:
        return None
    if len(columns) > 1:
        raise must_be("images", f"given, as {origin} has several columns of images: {columns}", None)
    return str(columns[0])


def images_of(
    cells: list[Any], column: str, size: int | tuple[int, int] | None, *, required: bool = True
) -> ColumnImages | None:
    """Paths of the images in a column, or the images themselves.

    Parameters
    ----------
    cells : list of dict or None
        Dicts with the keys "bytes" and "path", as the data set stores them.
    column : str
        Name of the column in error messages.
    size : int, tuple of (int, int) or None
        Side or (height, width) that decoded images are resized to; ``None`` requires that all have one size.
    required : bool, default=True
        Whether images of different sizes are an error where no size is given.

    Returns
    -------
    ColumnImages or None
        ``None`` for images of different sizes that are not required.
    """
    paths = [str((cell or {}).get("path") or "") for cell in cells]
    if all(cell and cell.get("bytes") is None for cell in cells) and all(map(_is_file, paths)):
        return ColumnImages(paths=[str(Path(path).absolute()) for path in paths])
    images: ByteImages | None = None
    for row, (cell, path) in enumerate(zip(cells, paths, strict=True)):
        image = _decoded((cell or {}).get("bytes"), path, f"row {row} of the column {column!r}", size)
        if images is None:
            images = np.empty((len(cells), *image.shape), dtype=np.uint8)
        if image.shape != images.shape[1:]:
            if not required:
                return None
            (height, width), (other_height, other_width) = images.shape[1:3], image.shape[:2]
            found = f"row 0 has {width} x {height} pixels, row {row} has {other_width} x {other_height}"
            raise must_be("image_size", "given where images differ in size", None, f"Here {found}.")
        images[row] = image
    return ColumnImages(images=images)


def _decoded(content: bytes | None, path: str, where: str, size: Any) -> ByteImages:
    if content is None and not _is_file(path):
        raise DataFormatError(f"There is no image in {where}. Remove such rows.")
    try:
        return load_image(path if content is None else io.BytesIO(content), size)
    except DataFormatError as error:
        raise DataFormatError(f"The image in {where} cannot be decoded: {error}") from error


def _is_file(path: str) -> bool:
    return bool(path) and Path(path).is_file()
