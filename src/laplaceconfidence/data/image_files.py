"""Decoding of the image files of a data set by several threads."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from laplaceconfidence.arrays import ByteImages, row_blocks
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.images import load_image
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.exceptions import DataFormatError, InvalidInputError
from laplaceconfidence.stages import stage
from laplaceconfidence.threads import thread_count
from laplaceconfidence.validation import check_integer, must_be

KEPT_UP_TO = 2 * 2**30
"""Limit in bytes for keeping decoded images in memory; larger sets are decoded again on every use."""

_IMAGES_PER_BLOCK = 256  # limits the memory of the images that are decoded in advance


@dataclass(frozen=True, slots=True)
class BadImage:
    """An image that cannot be decoded.

    Attributes
    ----------
    id : str
        Id of the sample.
    path : str
        The file.
    reason : str
        The error message.
    """

    id: str
    path: str
    reason: str


def has_image_files(dataset: NoisyDataset) -> bool:
    """Return whether the images of a data set are files that are not decoded.

    Parameters
    ----------
    dataset : NoisyDataset
        The data set.

    Returns
    -------
    bool
    """
    return dataset.images is None and dataset.source_kind == "image"


def decode_images(
    dataset: NoisyDataset,
    size: int | tuple[int, int] | None = None,
    *,
    skip_bad: bool = False,
    n_workers: int | None = None,
    keep_up_to: int | None = None,
) -> tuple[NoisyDataset, list[BadImage]]:
    """Decode all images once, and keep them in the data set if they fit in memory.

    Parameters
    ----------
    dataset : NoisyDataset
        A data set whose ``sources`` are paths of images.
    size : int, tuple of (int, int) or None, default=None
        Height and width to resize to; ``None`` requires that all images have the same size.
    skip_bad : bool, default=False
        Whether to leave out images that cannot be decoded instead of raising an error.
    n_workers : int or None, default=None
        Number of threads; ``None`` uses all cores.
    keep_up_to : int or None, default=None
        Limit in bytes for keeping the images; ``None`` is 2 GiB. Above it, files are only checked.

    Returns
    -------
    dataset : NoisyDataset
    bad : list of BadImage
        The images that were left out.
    """
    paths = _paths(dataset)
    if size is not None:
        for side in size if isinstance(size, tuple) else (size,):
            check_integer(side, "image_size", minimum=1)
    bad: list[BadImage] = []
    first: tuple[str, tuple[int, ...]] | None = None  # the path and shape of the first image
    kept: ByteImages | None = None
    good: list[int] = []
    for row, image in enumerate(_decoded(paths, size, thread_count(n_workers))):
        if isinstance(image, DataFormatError):
            if not skip_bad:
                raise DataFormatError(f"{image} Or leave such images out with skip_bad (--skip-bad).")
            bad.append(BadImage(str(dataset.sample_ids[row]), paths[row], str(image)))
            continue
        if first is None:
            first = (paths[row], image.shape)
            if image.size * len(paths) <= (KEPT_UP_TO if keep_up_to is None else keep_up_to):
                kept = np.empty((len(paths), *image.shape), dtype=np.uint8)
        elif image.shape != first[1]:
            raise _different_sizes(first, (paths[row], image.shape))
        if kept is not None:
            kept[len(good)] = image
        good.append(row)
    if not good:
        raise DataFormatError(f"None of the {len(paths)} images can be decoded. The first: {bad[0].reason}")
    chosen = dataset.subset(np.array(good)) if bad else dataset
    if (chosen.labels == MISSING).all() and (dataset.labels != MISSING).any():
        raise DataFormatError("No image with a label is left: the others cannot be decoded.")
    return (chosen if kept is None else replace(chosen, images=kept[: len(good)])), bad


def _decoded(paths: list[str], size: Any, n_workers: int) -> Iterator[ByteImages | DataFormatError]:
    """Yield the images in order. Pillow releases the interpreter lock while decoding, so threads help."""

    def decode(path: str) -> ByteImages | DataFormatError:
        try:
            return load_image(path, size)
        except DataFormatError as error:
            return error

    with (
        stage("decoding", total=len(paths)) as advance,
        ThreadPoolExecutor(n_workers) as pool,
    ):
        for block in row_blocks(len(paths), _IMAGES_PER_BLOCK):
            for image in pool.map(decode, paths[block]):
                advance(1)
                yield image


def _paths(dataset: NoisyDataset) -> list[str]:
    if dataset.source_kind != "image" or dataset.sources is None:
        raise must_be("dataset", "one whose sources are paths of images", dataset.source_kind)
    return [str(path) for path in dataset.sources]


def _different_sizes(
    one: tuple[str, tuple[int, ...]], other: tuple[str, tuple[int, ...]]
) -> InvalidInputError:
    (path, shape), (other_path, other_shape) = one, other
    return InvalidInputError(
        f"The 'image_size' parameter must be given where images differ in size: {path} has {shape[1]} x "
        f"{shape[0]} pixels, {other_path} has {other_shape[1]} x {other_shape[0]}. All are then resized to "
        "it, for example --image-size 64."
    )
