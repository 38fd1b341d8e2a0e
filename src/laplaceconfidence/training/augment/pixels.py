"""Batches of images as bytes, and gathering pixels from other positions of the same image."""

from __future__ import annotations

import torch
from torch import Tensor

from laplaceconfidence.validation import must_be


def check_images(images: Tensor) -> None:
    """Raise unless ``images`` is a batch of images."""
    if images.ndim != 4:
        raise must_be(
            "images",
            "a batch of shape (batch, channels, height, width)",
            f"shape {tuple(images.shape)}",
            "Feature vectors take no image augmentation: choose 'none'.",
        )


def as_bytes(images: Tensor) -> Tensor:
    """``images`` in 256 gray levels: as they are if uint8, else rounded from floating point in [0, 1]."""
    check_images(images)
    if images.dtype == torch.uint8:
        return images
    advice = "Augment first and normalize afterwards."
    if not images.is_floating_point():
        raise must_be("images", "uint8, or floating point in [0, 1]", str(images.dtype), advice)
    if images.numel():
        low, high = (float(bound) for bound in images.aminmax())
        if not 0 <= low <= high <= 1:
            raise must_be("images", "in [0, 1] where floating point", f"values {low:g} to {high:g}", advice)
    return (images.float() * 255).round_().to(torch.uint8)


def like(pixels: Tensor, images: Tensor) -> Tensor:
    """Bytes ``pixels`` converted to the type of ``images``."""
    return pixels if images.dtype == torch.uint8 else (pixels.float() / 255).to(images.dtype)


def coordinate_type(height: int, width: int) -> torch.dtype:
    """The smallest integer type that holds 16-bit fixed-point coordinates of images of this size."""
    return torch.int32 if max(height, width) <= 8192 else torch.int64


def fetch_pixels(images: Tensor, rows: Tensor, columns: Tensor, fill: int) -> Tensor:
    """Images whose pixel (i, j) is pixel (rows[i, j], columns[i, j]) of the same image in ``images``.

    ``rows`` and ``columns`` broadcast to (batch, new height, new width); what lies outside is ``fill``.
    """
    batch, channels, height, width = images.shape
    # A mask from sign bits, applied by products: comparisons and masked_fill take up to 20 times longer.
    beyond_rows = rows | (height - 1 - rows)
    beyond_columns = columns | (width - 1 - columns)
    inside = ((beyond_rows | beyond_columns) >> 31) + 1  # 1 inside, 0 outside: (batch, new height, new width)
    source = ((rows * width + columns) * inside).flatten(1).long().unsqueeze(1).expand(batch, channels, -1)
    fetched = images.flatten(2).gather(2, source).view(batch, channels, *inside.shape[1:])
    kept = inside.to(images.dtype).unsqueeze(1)
    fetched *= kept
    return fetched.add_((1 - kept) * fill) if fill else fetched
