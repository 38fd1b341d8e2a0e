"""The operations as Pillow has them, one image at a time: what the batched ones are compared with."""

from collections.abc import Callable

import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageOps

PILLOW_OPERATIONS: dict[str, Callable[[Image.Image, float, int], Image.Image]] = {
    "identity": lambda image, magnitude, fill: image,
    "autocontrast": lambda image, magnitude, fill: ImageOps.autocontrast(image),
    "brightness": lambda image, magnitude, fill: ImageEnhance.Brightness(image).enhance(magnitude),
    "color": lambda image, magnitude, fill: ImageEnhance.Color(image).enhance(magnitude),
    "contrast": lambda image, magnitude, fill: ImageEnhance.Contrast(image).enhance(magnitude),
    "equalize": lambda image, magnitude, fill: ImageOps.equalize(image),
    "invert": lambda image, magnitude, fill: ImageOps.invert(image),
    "posterize": lambda image, magnitude, fill: ImageOps.posterize(image, int(magnitude)),
    "sharpness": lambda image, magnitude, fill: ImageEnhance.Sharpness(image).enhance(magnitude),
    "solarize": lambda image, magnitude, fill: ImageOps.solarize(image, magnitude),
    "rotate": lambda image, magnitude, fill: image.rotate(magnitude, fillcolor=gray(image, fill)),
    "shear_x": lambda image, magnitude, fill: affine(image, (1, magnitude, 0, 0, 1, 0), fill),
    "shear_y": lambda image, magnitude, fill: affine(image, (1, 0, 0, magnitude, 1, 0), fill),
    "translate_x": lambda image, magnitude, fill: affine(
        image, (1, 0, magnitude * image.width, 0, 1, 0), fill
    ),
    "translate_y": lambda image, magnitude, fill: affine(
        image, (1, 0, 0, 0, 1, magnitude * image.height), fill
    ),
}


def affine(image: Image.Image, matrix: tuple[float, ...], fill: int) -> Image.Image:
    return image.transform(
        image.size, Image.Transform.AFFINE, matrix, Image.Resampling.NEAREST, fillcolor=gray(image, fill)
    )


def gray(image: Image.Image, level: int) -> int | tuple[int, ...]:
    return level if image.mode == "L" else (level,) * 3


def to_pillow(image: torch.Tensor) -> Image.Image:
    """A tensor (channels, height, width) as an image."""
    channels_last = image.permute(1, 2, 0).numpy()
    return Image.fromarray(channels_last[..., 0] if channels_last.shape[2] == 1 else channels_last)


def from_pillow(image: Image.Image) -> torch.Tensor:
    values = np.array(image)
    return torch.from_numpy(values[None] if values.ndim == 2 else values.transpose(2, 0, 1))


def by_pillow(images: torch.Tensor, name: str, magnitudes: np.ndarray, fill: int = 0) -> torch.Tensor:
    """A batch through Pillow, image by image."""
    operation = PILLOW_OPERATIONS[name]
    results = [
        from_pillow(operation(to_pillow(image), float(magnitude), fill))
        for image, magnitude in zip(images, magnitudes, strict=True)
    ]
    return torch.stack(results)
