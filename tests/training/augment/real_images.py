"""Real images for the tests of augmentation, as bytes of shape (n, channels, height, width)."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits

CIFAR = Path(__file__).parents[4] / "shared" / "data" / "cifar10_images.npz"
KINDS = ("digits", "large_digits", "color_digits", "cifar")


def real_images(kind: str, n: int = 40) -> torch.Tensor:
    if kind == "cifar":
        if not CIFAR.exists():
            pytest.skip(f"no CIFAR-10 images in {CIFAR}")
        with np.load(CIFAR, allow_pickle=False) as file:
            return torch.from_numpy(file["train_images"][:n].transpose(0, 3, 1, 2).copy())
    digits = (load_digits().images * 255 / 16).astype(np.uint8)
    if kind == "digits":
        return torch.from_numpy(digits[:n, None])
    if kind == "large_digits":
        return enlarged(digits[:n], (53, 37))[:, None]
    red, green, blue = (enlarged(digits[start : start + n], (31, 29)) for start in (0, 500, 1000))
    return torch.stack([red, green, blue], dim=1)


def enlarged(images: np.ndarray, size: tuple[int, int]) -> torch.Tensor:
    grown = [Image.fromarray(image).resize(size, Image.Resampling.BICUBIC) for image in images]
    return torch.from_numpy(np.stack([np.array(image) for image in grown]))
