"""The weak view of large photographs: a random part of the image, resized, and a flip."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.training.augment.pixels import as_bytes, check_images, like
from laplaceconfidence.training.augment.randomness import integers, uniform
from laplaceconfidence.validation import check_integer, check_real, must_be

_ATTEMPTS = 10
SHARES = (0.08, 1.0)
RATIOS = (3 / 4, 4 / 3)


@dataclass(frozen=True, slots=True)
class RandomResizedCrop:
    """A random rectangle of the image, resized to a square, then a horizontal flip with probability one half.

    The rectangle has a random share of the area and a random ratio of width to height. It is drawn up to ten
    times until it fits into the image; otherwise the center of the image is taken. Networks that are trained
    on this view predict for the center of an image, cropped to ``size``.

    Parameters
    ----------
    size : int
        Height and width of the result.
    shares : tuple of float, default=(0.08, 1.0)
        Smallest and largest share of the area.
    ratios : tuple of float, default=(3/4, 4/3)
        Smallest and largest ratio of width to height; logarithms are drawn evenly.
    flip : bool, default=True
        Whether to flip.
    """

    size: int
    shares: tuple[float, float] = SHARES
    ratios: tuple[float, float] = RATIOS
    flip: bool = True

    def __post_init__(self) -> None:
        check_integer(self.size, "size", minimum=1)
        for name, (low, high) in (("shares", self.shares), ("ratios", self.ratios)):
            check_real(low, name, above=0)
            if not low <= high:
                raise must_be(name, "a smaller and a larger number", (low, high))
        check_real(self.shares[1], "shares", at_most=1)

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        check_images(images)
        batch, _, height, width = images.shape
        tops, lefts, heights, widths = self._rectangles(batch, height, width, generator)
        flipped = integers(2, (batch,), generator).astype(bool) if self.flip else np.zeros(batch, bool)
        rows = _positions(tops, heights, self.size)
        columns = _positions(lefts, widths, self.size)
        columns = np.where(flipped[:, None], columns[:, ::-1], columns)
        return _sampled(images, rows, columns)

    def _rectangles(
        self, batch: int, height: int, width: int, generator: torch.Generator
    ) -> tuple[FloatArray, ...]:
        """Tops, lefts, heights and widths, each (batch,), in whole pixels."""
        areas = height * width * _between(self.shares, uniform((batch, _ATTEMPTS), generator))
        logs = (float(np.log(self.ratios[0])), float(np.log(self.ratios[1])))
        ratios = np.exp(_between(logs, uniform((batch, _ATTEMPTS), generator)))
        widths, heights = np.round(np.sqrt(areas * ratios)), np.round(np.sqrt(areas / ratios))
        fits = (widths >= 1) & (widths <= width) & (heights >= 1) & (heights <= height)
        first, place = fits.argmax(axis=1), uniform((batch, 2), generator)
        rows = np.arange(batch)
        chosen_height, chosen_width = heights[rows, first], widths[rows, first]
        tops = np.floor(place[:, 0] * (height - chosen_height + 1))
        lefts = np.floor(place[:, 1] * (width - chosen_width + 1))
        whole_height, whole_width = self._center(height, width)
        none = ~fits.any(axis=1)
        return (
            np.where(none, (height - whole_height) // 2, tops),
            np.where(none, (width - whole_width) // 2, lefts),
            np.where(none, whole_height, chosen_height),
            np.where(none, whole_width, chosen_width),
        )

    def _center(self, height: int, width: int) -> tuple[int, int]:
        """Height and width of the largest rectangle whose ratio is allowed."""
        ratio = width / height
        if ratio < self.ratios[0]:
            return min(height, round(width / self.ratios[0])), width
        if ratio > self.ratios[1]:
            return height, min(width, round(height * self.ratios[1]))
        return height, width


def center_crop(images: Tensor, size: int) -> Tensor:
    """The center of images, (..., size, size); images that are not larger stay as they are.

    Parameters
    ----------
    images : Tensor of shape (..., height, width)
        The images.
    size : int
        Height and width of the center.

    Returns
    -------
    Tensor
    """
    height, width = images.shape[-2:]
    top, left = max(0, (height - size) // 2), max(0, (width - size) // 2)
    return images[..., top : top + size, left : left + size]


def _between(bounds: tuple[float, float], numbers: FloatArray) -> FloatArray:
    return bounds[0] + (bounds[1] - bounds[0]) * numbers


def _positions(starts: FloatArray, lengths: FloatArray, size: int) -> FloatArray:
    """(batch, size) where the pixels of the result are in the image, in pixels and never beyond the part."""
    steps = (np.arange(size) + 0.5) * (lengths[:, None] / size) - 0.5
    positions: FloatArray = starts[:, None] + np.clip(steps, 0, lengths[:, None] - 1)
    return positions


def _sampled(images: Tensor, rows: FloatArray, columns: FloatArray) -> Tensor:
    """Images at other positions, interpolated bilinearly."""
    height, width = images.shape[2:]
    grid_rows = torch.from_numpy(2 * rows / max(1, height - 1) - 1).float()
    grid_columns = torch.from_numpy(2 * columns / max(1, width - 1) - 1).float()
    n, size = rows.shape
    grid = torch.stack(
        (grid_columns[:, None, :].expand(n, size, size), grid_rows[:, :, None].expand(n, size, size)), dim=3
    )
    pixels = torch.nn.functional.grid_sample(
        as_bytes(images).float(), grid.to(images.device), padding_mode="border", align_corners=True
    )
    return like(pixels.round_().clamp_(0, 255).to(torch.uint8), images)
