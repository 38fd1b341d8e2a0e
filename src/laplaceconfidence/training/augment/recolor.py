"""Operations that change the values of pixels and leave them where they are.

Each takes bytes (b, C, H, W) and one magnitude per image (b,), and computes what Pillow's ``ImageEnhance``
and ``ImageOps`` compute for one image, rounding included. Masks over pixels are made by arithmetic, not by
``torch.where``, which is many times slower on bytes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.validation import must_be

Recolor = Callable[[Tensor, FloatArray], Tensor]

_RED, _GREEN, _BLUE = 19595, 38470, 7471  # 0.299, 0.587, 0.114 in 16-bit fixed point, as Pillow has them


def autocontrast(images: Tensor, magnitudes: FloatArray) -> Tensor:
    """Each channel stretched from black to white; there is no magnitude."""
    wide = torch.float32 if images.device.type == "mps" else torch.float64  # mps has no float64
    low = images.amin((2, 3), keepdim=True).to(wide)
    span = images.amax((2, 3), keepdim=True) - low
    flat = span == 0  # stays as it is: times 1, plus 0
    scale = torch.where(flat, 1.0, torch.full_like(span, 255) / span)  # 255 / span would be 255 * (1 / span)
    offset = torch.where(flat, 0.0, -low * scale)
    return _to_bytes(images.to(wide) * scale + offset)


def brightness(images: Tensor, magnitudes: FloatArray) -> Tensor:
    """Blend with black: 0 is black, 1 leaves the image alone, more brightens."""
    return _to_bytes(images.float() * _per_image(magnitudes, images))


def color(images: Tensor, magnitudes: FloatArray) -> Tensor:
    """Blend with the gray image: 0 is gray, 1 leaves the image alone. Images of one channel stay."""
    return images if images.shape[1] == 1 else _blend(_luma(images).float(), images.float(), magnitudes)


def contrast(images: Tensor, magnitudes: FloatArray) -> Tensor:
    """Blend with the mean gray: 0 is flat, 1 leaves the image alone."""
    n_pixels = images.shape[2] * images.shape[3]
    total = _luma(images).sum((1, 2, 3), keepdim=True)
    mean = (2 * total + n_pixels) // (2 * n_pixels)
    return _blend(mean.float(), images.float(), magnitudes)


def equalize(images: Tensor, magnitudes: FloatArray) -> Tensor:
    """Each channel mapped so that its gray levels are used evenly; there is no magnitude."""
    values = images.flatten(2).long()  # (b, C, H * W)
    n_pixels = values.shape[2]
    counts = torch.zeros(*values.shape[:2], 256, dtype=torch.int32, device=images.device)
    counts.scatter_add_(2, values, torch.ones_like(values, dtype=torch.int32))
    brightest = counts.gather(2, values.amax(2, keepdim=True))
    step = (n_pixels - brightest) // 255
    darker = counts.cumsum(2) - counts
    table = ((darker + step // 2) // step.clamp(min=1)).clamp_(max=255)
    unchanged = torch.arange(256, device=images.device)
    table = torch.where(step > 0, table, unchanged).to(torch.uint8)
    return table.gather(2, values).view_as(images)


def identity(images: Tensor, magnitudes: FloatArray) -> Tensor:
    """The images as they are; there is no magnitude."""
    return images


def invert(images: Tensor, magnitudes: FloatArray) -> Tensor:
    """The negative; there is no magnitude."""
    return ~images


def posterize(images: Tensor, magnitudes: FloatArray) -> Tensor:
    """Keep only the highest bits of every value; the magnitude is their number, truncated, from 1 to 8."""
    dropped = 8 - np.clip(magnitudes.astype(np.int64), 1, 8)
    kept = torch.from_numpy((256 - 2**dropped).astype(np.uint8))
    return images & kept.view(-1, 1, 1, 1).to(images.device)


def sharpness(images: Tensor, magnitudes: FloatArray) -> Tensor:
    """Blend with a smoothed image: 0 is smooth, 1 leaves the image alone, more sharpens."""
    if min(images.shape[2:]) < 3:
        return images
    values = images.float()
    inner = values[:, :, 1:-1, 1:-1]
    columns = values[:, :, :-2] + values[:, :, 1:-1] + values[:, :, 2:]
    neighborhood = columns[..., :-2] + columns[..., 1:-1] + columns[..., 2:]
    smooth = ((neighborhood + 4 * inner) / 13 + 0.5).floor_()  # the center counts 5 of 13
    result = images.clone()  # the border has no neighborhood and stays
    result[:, :, 1:-1, 1:-1] = _blend(smooth, inner, magnitudes)
    return result


def solarize(images: Tensor, magnitudes: FloatArray) -> Tensor:
    """Values from the magnitude on (0 to 256) are inverted."""
    threshold = torch.from_numpy(np.ceil(magnitudes).astype(np.int16)).view(-1, 1, 1, 1).to(images.device)
    below = (images.to(torch.int16) - threshold) >> 15  # the sign: all bits are 1 below the threshold, else 0
    return images ^ ~below.to(torch.uint8)


def _blend(start: Tensor, end: Tensor, magnitudes: FloatArray) -> Tensor:
    """Interpolate from ``start`` (magnitude 0) to ``end`` (magnitude 1) and beyond; float32 to bytes."""
    # Two separate roundings, as in Pillow: lerp and addcmul may fuse them and be off by one level.
    return _to_bytes((end - start) * _per_image(magnitudes, end) + start)


def _to_bytes(values: Tensor) -> Tensor:
    """Truncate to whole numbers from 0 to 255."""
    return values.clamp_(0, 255).to(torch.uint8)


def _per_image(magnitudes: FloatArray, images: Tensor) -> Tensor:
    return torch.from_numpy(magnitudes.astype(np.float32)).view(-1, 1, 1, 1).to(images.device)


def _luma(images: Tensor) -> Tensor:
    """Gray values (b, 1, H, W) as Pillow's conversion to mode L gives them."""
    if images.shape[1] == 1:
        return images
    if images.shape[1] != 3:
        raise must_be("images", "gray or RGB (1 or 3 channels)", f"{images.shape[1]} channels")
    values = images.int()
    red, green, blue = values[:, 0:1], values[:, 1:2], values[:, 2:3]
    return (red * _RED + green * _GREEN + blue * _BLUE + 0x8000) >> 16


RECOLORS: dict[str, Recolor] = {
    "identity": identity,
    "autocontrast": autocontrast,
    "brightness": brightness,
    "color": color,
    "contrast": contrast,
    "equalize": equalize,
    "invert": invert,
    "posterize": posterize,
    "sharpness": sharpness,
    "solarize": solarize,
}
