"""Images that are unusable or odd: dark, bright, of one color, blurry, of an odd size or shape, unreadable.

The few statistics that this takes are computed here; they need nothing but Pillow and NumPy.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laplaceconfidence.arrays import BoolArray, ByteImages, FloatArray, row_blocks
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.images import image_shape, load_thumbnail
from laplaceconfidence.exceptions import DataFormatError
from laplaceconfidence.stages import stage
from laplaceconfidence.threads import thread_count

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
    n = len(dataset)
    # Columns: darkest and brightest percentile, deviation, detail, height, width; NaN where unreadable.
    facts = np.full((n, 6), np.nan)
    with stage("images", total=n) as advance:
        for row, values in enumerate(_facts(dataset, thread_count(n_jobs))):
            if values is not None:
                facts[row] = values
            advance(1)
    low, high, deviation, detail, height, width = facts.T
    unreadable = np.isnan(height)
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
        False also if there are no images.
    """
    has_files = dataset.source_kind == "image" and dataset.sources is not None
    if requested is not None:
        return requested and (has_files or dataset.images is not None)
    return (has_files and len(dataset) <= MOST_FILES) or (not has_files and dataset.images is not None)


def _facts(dataset: NoisyDataset, n_threads: int) -> Iterator[tuple[float, ...] | None]:
    """Yield the facts about every image, in order; None for those that cannot be decoded."""
    if dataset.source_kind != "image" or dataset.sources is None:
        assert dataset.images is not None
        for image in dataset.images:
            yield *_measured(image), *image.shape[:2]
        return
    paths = [str(source) for source in dataset.sources]
    with ThreadPoolExecutor(n_threads) as pool:
        for block in row_blocks(len(paths), _FILES_PER_BLOCK):
            yield from pool.map(_of_file, paths[block])


def _of_file(path: str) -> tuple[float, ...] | None:
    try:
        return *_measured(load_thumbnail(path, _LONGEST_SIDE)), *image_shape(path)
    except DataFormatError:
        return None


def _measured(image: ByteImages) -> tuple[float, float, float, float]:
    pixels = image[:, :, :3].astype(np.float32)
    gray = pixels.mean(axis=2)
    values = np.sort(gray, axis=None)
    low, high = values[len(values) // 100] / 255, values[-1 - len(values) // 100] / 255
    contrast = float(gray.std())
    detail = np.nan
    if min(gray.shape) >= 3 and contrast > 0:
        inner = gray[1:-1, 1:-1]
        around = (gray[:-2, 1:-1] + gray[2:, 1:-1] + gray[1:-1, :-2] + gray[1:-1, 2:]) / 4
        detail = float((inner - around).std()) / contrast
    return float(low), float(high), float(pixels.std(axis=(0, 1)).max()), detail


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
