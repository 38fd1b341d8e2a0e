"""Operations that move pixels: one affine map per image, nearest source pixel, constant fill outside.

A map is the six numbers (a, b, c, d, e, f) of Pillow's ``Image.transform``: pixel (x, y) of the result is
pixel (a x + b y + c, d x + e y + f) of the source, both measured from the upper left corner. ``warp`` follows
the 16-bit fixed-point arithmetic that Pillow uses for nearest-neighbor maps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.training.augment.pixels import coordinate_type, fetch_pixels

Move = Callable[[FloatArray, int, int], FloatArray]


def rotate(magnitudes: FloatArray, height: int, width: int) -> FloatArray:
    """The magnitude is in degrees, counterclockwise around the center."""
    angle = np.radians(-magnitudes)
    cos, sin = np.cos(angle), np.sin(angle)
    middle_x, middle_y = width / 2, height / 2
    shift_x = middle_x - cos * middle_x - sin * middle_y
    shift_y = middle_y + sin * middle_x - cos * middle_y
    return np.stack([cos, sin, shift_x, -sin, cos, shift_y], axis=1)


def shear_x(magnitudes: FloatArray, height: int, width: int) -> FloatArray:
    """Shift rows sideways by the magnitude times their distance from the top."""
    return _identity_but(1, magnitudes)


def shear_y(magnitudes: FloatArray, height: int, width: int) -> FloatArray:
    """Shift columns up or down by the magnitude times their distance from the left."""
    return _identity_but(3, magnitudes)


def translate_x(magnitudes: FloatArray, height: int, width: int) -> FloatArray:
    """The magnitude is a share of the width; positive values move the image to the left."""
    return _identity_but(2, magnitudes * width)


def translate_y(magnitudes: FloatArray, height: int, width: int) -> FloatArray:
    """The magnitude is a share of the height; positive values move the image up."""
    return _identity_but(5, magnitudes * height)


def warp(images: Tensor, maps: FloatArray, fill: int = 0) -> Tensor:
    """Move images by affine maps.

    Parameters
    ----------
    images : Tensor of uint8, shape (b, channels, height, width)
        The images.
    maps : ndarray of shape (b, 6)
        One map per image.
    fill : int, default=0
        Gray level of pixels that come from outside of the image.

    Returns
    -------
    Tensor of uint8, shape (b, channels, height, width)
    """
    height, width = images.shape[2:]
    a, b, c, d, e, f = maps.T
    first_pixel_center = np.stack([a, b, c + (a + b) / 2, d, e, f + (d + e) / 2])
    integer = coordinate_type(height, width)
    fixed = torch.from_numpy(np.floor(first_pixel_center * 65536 + 0.5)).to(integer).to(images.device)
    per_x, per_y, first_x, down_x, down_y, first_y = fixed.view(6, -1, 1, 1).unbind()
    x = torch.arange(width, dtype=integer, device=images.device)
    y = torch.arange(height, dtype=integer, device=images.device).unsqueeze(1)
    columns = ((per_x * x + first_x) + per_y * y) >> 16
    rows = ((down_x * x + first_y) + down_y * y) >> 16
    return fetch_pixels(images, rows, columns, fill)


def _identity_but(position: int, values: FloatArray) -> FloatArray:
    """(b, 6) maps that change nothing except for ``values`` at one of the six positions."""
    maps = np.tile(np.array([1.0, 0.0, 0.0, 0.0, 1.0, 0.0]), (len(values), 1))
    maps[:, position] = values
    return maps


MOVES: dict[str, Move] = {
    "rotate": rotate,
    "shear_x": shear_x,
    "shear_y": shear_y,
    "translate_x": translate_x,
    "translate_y": translate_y,
}
