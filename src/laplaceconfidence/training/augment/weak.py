"""The weak view: a random crop after padding, and a flip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from laplaceconfidence.arrays import IntArray
from laplaceconfidence.training.augment.pixels import check_images, coordinate_type, fetch_pixels
from laplaceconfidence.training.augment.randomness import integers
from laplaceconfidence.validation import check_choice, check_integer, must_be


@dataclass(frozen=True, slots=True)
class WeakAugment:
    """Random crop of the image padded on all sides, then a horizontal flip with probability one half.

    Images may be of any type.

    Parameters
    ----------
    padding : int, default=4
        Pixels added on each side before the crop.
    flip : bool, default=True
        Whether to flip. Mirrored digits and text mean something else or nothing.
    size : tuple of int, optional
        (height, width) of the crop; by default that of the images.
    padding_mode : {"zeros", "reflect"}, default="zeros"
        What the padding consists of: black, or the mirrored image.
    """

    padding: int = 4
    flip: bool = True
    size: tuple[int, int] | None = None
    padding_mode: Literal["zeros", "reflect"] = "zeros"

    def __post_init__(self) -> None:
        check_integer(self.padding, "padding", minimum=0)
        check_choice(self.padding_mode, "padding_mode", ("zeros", "reflect"))
        for side in self.size or ():
            check_integer(side, "size", minimum=1)

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        check_images(images)
        batch, _, height, width = images.shape
        new_height, new_width = self.size or (height, width)
        self._check_fit(height, width, new_height, new_width)
        rows = self._first(height - new_height, batch, generator) + np.arange(new_height)
        columns = self._first(width - new_width, batch, generator) + np.arange(new_width)
        if self.flip:
            flipped = integers(2, (batch, 1), generator).astype(bool)
            columns = np.where(flipped, columns[:, ::-1], columns)
        if self.padding_mode == "reflect":
            rows, columns = _reflected(rows, height), _reflected(columns, width)
        integer = coordinate_type(height, width)
        from_rows = torch.from_numpy(rows).to(integer).unsqueeze(2).to(images.device)
        from_columns = torch.from_numpy(columns).to(integer).unsqueeze(1).to(images.device)
        return fetch_pixels(images, from_rows, from_columns, fill=0)

    def _first(self, spare: int, batch: int, generator: torch.Generator) -> IntArray:
        """(batch, 1) where the crop begins along one side, counted from the edge of the unpadded image."""
        return integers(spare + 2 * self.padding + 1, (batch, 1), generator) - self.padding

    def _check_fit(self, height: int, width: int, new_height: int, new_width: int) -> None:
        if new_height > height + 2 * self.padding or new_width > width + 2 * self.padding:
            padded = f"{height + 2 * self.padding} x {width + 2 * self.padding}"
            raise must_be("size", f"at most that of the padded images, {padded}", self.size)
        if self.padding_mode == "reflect" and self.padding >= min(height, width):
            rule = f"below the smaller side of the images ({min(height, width)}) to reflect them"
            raise must_be("padding", rule, self.padding)


def _reflected(index: IntArray, side: int) -> IntArray:
    """Positions beyond the edges, mirrored to the inside; the edge itself is not repeated."""
    reflected: IntArray = side - 1 - np.abs(side - 1 - np.abs(index))
    return reflected
