"""Images that are unusable or odd: dark, bright, of one color, blurry, of an odd size or shape, unreadable.

The few statistics that this takes are computed here; they need nothing but Pillow and NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import BoolArray, ByteImages, FloatArray, row_blocks, sized_row_blocks
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.images import image_shape, load_thumbnail
from laplaceconfidence.exceptions import DataFormatError
from laplaceconfidence.stages import stage
from laplaceconfidence.threads import thread_count
from laplaceconfidence.validation import must_be

KINDS = ("unreadable", "dark", "bright", "one color", "blurry", "odd size", "odd shape")
MOST_FILES = 20_000
"""Image files up to this number are looked at unless the caller decides; more take minutes to decode."""

DARK, BRIGHT = 0.25, 0.95  # of the range: nearly all pixels are darker, or brighter
ONE_COLOR = 3.0  # largest standard deviation of a channel; compression alone makes about 2
ODD_SIZE = 10.0  # times the usual side, or the tenth part
ODD_SHAPE = 3.0  # times as wide, or as high, as usual
BLURRY = 0.05  # largest detail; sharp photographs have 0.1 to 0.5, blurred by 2 pixels 0.02 to 0.05
STEPS = 2.5  # below the median, in steps from there to the first decile, as for outliers
SMALLEST_SIDE = 32  # of images whose sharpness is judged
_LONGEST_SIDE = 256  # of the picture that is looked at
_FILES_PER_BLOCK = 256


@dataclass(frozen=True, slots=True, eq=False)
class ImageIssues:
    """What is odd about images.

    Parameters
    ----------
    found : dict of str to ndarray of bool of shape (n,)
        Which images have each of the ``KINDS``.
    """

    found: dict[str, BoolArray]

    @property
    def flagged(self) -> BoolArray:
        """ndarray of bool of shape (n,): which images have any of them."""
        return np.asarray(np.any(list(self.found.values()), axis=0))

    @property
    def described(self) -> NDArray[Any]:
        """ndarray of shape (n,): the kinds that an image has, separated by commas; None without any."""
        flagged = self.flagged
        words = np.full(len(flagged), None, dtype=object)
        for row in np.flatnonzero(flagged).tolist():
            words[row] = ", ".join(kind for kind in KINDS if self.found[kind][row])
        return words


def find_image_issues(dataset: NoisyDataset, *, n_jobs: int | None = None) -> ImageIssues:
    """Look at all images of a data set.

    An image is dark or bright if 99% of its pixels are, and of one color if hardly any differs. It is blurry
    if its finest detail, relative to its contrast, is small in itself and compared with the other images.
    Size and shape (the ratio of width and height) are odd compared with the medians of the data set.

    Parameters
    ----------
    dataset : NoisyDataset
        A data set with images, in memory or as files.
    n_jobs : int, optional
        Threads that decode files; all cores by default.

    Returns
    -------
    ImageIssues
    """
    # Columns: darkest and brightest percentile, deviation, detail, height, width; NaN where unreadable.
    with stage("images", total=len(dataset)) as advance:
        facts = np.concatenate(list(_facts(dataset, thread_count(n_jobs), advance)))
    low, high, deviation, detail, height, width = facts.T
    unreadable = np.isnan(height)
    if 2 * unreadable.sum() > len(unreadable):  # the files are elsewhere, and only their features are here
        return ImageIssues({kind: np.zeros(len(unreadable), dtype=bool) for kind in KINDS})
    with np.errstate(invalid="ignore", divide="ignore"):
        side, shape = np.sqrt(height * width), width / height
        one_color = deviation < ONE_COLOR
        found = {
            "unreadable": unreadable,
            "dark": high < DARK,
            "bright": low > BRIGHT,
            "one color": one_color,
            "blurry": _is_blurry(
                detail, ~unreadable & ~one_color & (np.minimum(height, width) >= SMALLEST_SIDE)
            ),
            "odd size": _factor(side) >= ODD_SIZE,
            "odd shape": _factor(shape) >= ODD_SHAPE,
        }
    return ImageIssues({kind: np.asarray(mask, dtype=bool) for kind, mask in found.items()})


def can_look_at_images(dataset: NoisyDataset, requested: bool | None) -> bool:
    """Return whether the images of a data set are looked at.

    Parameters
    ----------
    dataset : NoisyDataset
        The data set.
    requested : bool or None
        What the caller wants; ``None`` looks at images in memory, and at files if there are not too many.

    Returns
    -------
    bool

    Raises
    ------
    InvalidInputError
        If the caller wants something and there are no images.
    """
    has_files = dataset.source_kind == "image" and dataset.sources is not None
    if not has_files and dataset.images is None:
        if requested is not None:
            raise must_be("image_issues", "left out for data without images", requested)
        return False
    return not has_files or len(dataset) <= MOST_FILES if requested is None else requested


def _facts(dataset: NoisyDataset, n_threads: int, advance: Callable[[int], None]) -> Iterator[FloatArray]:
    """Yield the facts about blocks of images, in order; NaN for those that cannot be decoded."""
    if dataset.source_kind != "image" or dataset.sources is None:
        assert dataset.images is not None
        for rows in sized_row_blocks(len(dataset), int(np.prod(dataset.images.shape[1:]))):
            images = dataset.images[rows]
            shape = np.broadcast_to(images.shape[1:3], (len(images), 2))
            yield np.column_stack([_measured(images), shape])
            advance(len(images))
        return
    paths = [str(source) for source in dataset.sources]
    with ThreadPoolExecutor(n_threads) as pool:
        for rows in row_blocks(len(paths), _FILES_PER_BLOCK):
            yield np.stack(list(pool.map(_of_file, paths[rows])))
            advance(len(paths[rows]))


def _of_file(path: str) -> FloatArray:
    try:
        return np.append(_measured(load_thumbnail(path, _LONGEST_SIDE)[None])[0], image_shape(path))
    except DataFormatError:
        return np.full(6, np.nan)


def _measured(images: ByteImages) -> FloatArray:
    """Darkest and brightest percentile, largest deviation of a channel, and detail of images, (b, 4)."""
    pixels = images[..., :3].astype(np.float32)
    gray = pixels.mean(axis=3)
    values = np.sort(gray.reshape(len(gray), -1), axis=1)
    low, high = (values[:, at] / 255 for at in (values.shape[1] // 100, -1 - values.shape[1] // 100))
    detail = np.full(len(gray), np.nan)
    if min(gray.shape[1:]) >= 3:
        inner = gray[:, 1:-1, 1:-1]
        across, along = gray[:, 1:-1, :-2] + gray[:, 1:-1, 2:], gray[:, :-2, 1:-1] + gray[:, 2:, 1:-1]
        difference = (inner - (across + along) / 4).std(axis=(1, 2))
        contrast = gray.std(axis=(1, 2))
        np.divide(difference, contrast, out=detail, where=contrast > 0)
    return np.column_stack([low, high, pixels.std(axis=(1, 2)).max(axis=1), detail])


def _is_blurry(detail: FloatArray, judged: BoolArray) -> BoolArray:
    judged = judged & (detail > 0)
    result = np.zeros(len(detail), dtype=bool)
    if judged.any():
        values = np.log(detail[judged])
        first_decile, median = np.quantile(values, [0.1, 0.5])
        step = max(median - first_decile, np.log(2) / STEPS)  # where most are alike, half is unusual
        result[judged] = (values < median - STEPS * step) & (detail[judged] < BLURRY)
    return result


def _factor(values: FloatArray) -> FloatArray:
    """How many times larger or smaller than the median, at least 1."""
    if np.isnan(values).all():
        return np.ones(len(values))
    factor = values / np.nanmedian(values)
    return np.nan_to_num(np.maximum(factor, 1 / factor), nan=1.0)
