"""The settings that suit the data and the machine, where the user states none."""

from __future__ import annotations

import warnings
from typing import Any

import torch

from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.image_files import has_image_files
from laplaceconfidence.data.images import load_image
from laplaceconfidence.exceptions import AdjustedSettingWarning, DataFormatError

# Pixels of the shorter side up to which images are tiny or small.
TINY, SMALL = 16, 96
SIDE_WITHOUT_GPU = 64
"""Side in pixels that larger image files are resized to where there is no GPU."""


def automatic_preset(sample_shape: tuple[int, ...], device: torch.device) -> str:
    """The preset whose ``[training]`` and ``[method]`` suit the data and the device.

    Parameters
    ----------
    sample_shape : tuple of int
        Shape of one sample: (features,) or (channels, height, width).
    device : torch.device
        The device that networks are trained on.

    Returns
    -------
    str
        "embeddings-mlp" for feature vectors; for images "image-folder-tiny", "image-folder-small" or
        "image-folder-large", by the shorter side: up to 16 pixels, up to 96 pixels, or more. Without a GPU
        it is "image-folder-small" for large images, too.
    """
    if len(sample_shape) == 1:
        return "embeddings-mlp"
    if is_large(sample_shape):
        return "image-folder-small" if device.type == "cpu" else "image-folder-large"
    return "image-folder-tiny" if min(sample_shape[1:]) <= TINY else "image-folder-small"


def automatic_image_size(data: Any, device: torch.device) -> int | None:
    """The side that image files are resized to where neither an image size nor a network is given.

    Parameters
    ----------
    data : Any
        The data; only a ``NoisyDataset`` can have image files.
    device : torch.device
        The device that networks are trained on.

    Returns
    -------
    int or None
        64 for large image files without a GPU, with a warning; otherwise ``None``: the images keep their
        size.
    """
    if device.type != "cpu" or not isinstance(data, NoisyDataset) or not has_image_files(data):
        return None
    shape = first_image_shape(data)
    if shape is None or not is_large(shape):
        return None
    side = SIDE_WITHOUT_GPU
    _warn(f"are resized to {side} x {side} pixels, and a small network is trained on them")
    return side


def warn_if_large_for_cpu(sample_shape: tuple[int, ...], device: torch.device) -> None:
    """Warn where large images that are not resized select the settings for small ones."""
    if device.type == "cpu" and is_large(sample_shape):
        _warn("keep their size, which is slow, and a small network is trained on them")


def is_large(sample_shape: tuple[int, ...]) -> bool:
    """Whether samples of this shape are images of more than 96 pixels on the shorter side."""
    return len(sample_shape) == 3 and min(sample_shape[1:]) > SMALL


def first_image_shape(dataset: NoisyDataset) -> tuple[int, int, int] | None:
    """(channels, height, width) of the first image file that can be decoded; ``None`` if none can be."""
    for path in () if dataset.sources is None else dataset.sources:
        try:
            height, width, channels = load_image(str(path)).shape
        except DataFormatError:  # reported, or left out if that was asked for, when all images are decoded
            continue
        return channels, height, width
    return None


def _warn(what_happens: str) -> None:
    warnings.warn(
        f"Training runs on the CPU, so images of more than {SMALL} pixels {what_happens} (preset "
        "image-folder-small). To train a large network on images of full size, use a GPU or ask for it with "
        "--preset image-folder-large, in Python network='inception_resnet_v2': on a CPU that takes days. "
        "Another size for image files is set with --image-size, in Python image_size.",
        AdjustedSettingWarning,
        stacklevel=3,
    )
