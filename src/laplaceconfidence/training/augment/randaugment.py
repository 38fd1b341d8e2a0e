"""RandAugment (Cubuk et al., 2020) as the LaplaceConfidence paper uses it, after FixMatch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from laplaceconfidence.training.augment.cutout import Cutout
from laplaceconfidence.training.augment.operations import CODES, apply_operations
from laplaceconfidence.training.augment.pixels import as_bytes, like
from laplaceconfidence.training.augment.randomness import integers, uniform
from laplaceconfidence.validation import check_integer

PAPER_RANGES: dict[str, tuple[float, float]] = {
    "autocontrast": (0, 1),
    "brightness": (0.05, 0.95),
    "color": (0.05, 0.95),
    "contrast": (0.05, 0.95),
    "equalize": (0, 1),
    "identity": (0, 1),
    "posterize": (4, 8),
    "rotate": (-30, 30),
    "sharpness": (0.05, 0.95),
    "shear_x": (-0.3, 0.3),
    "shear_y": (-0.3, 0.3),
    "solarize": (0, 256),
    "translate_x": (-0.3, 0.3),
    "translate_y": (-0.3, 0.3),
}
"""The paper's table of operations; autocontrast, equalize and identity have no magnitude."""

_CODES = np.array([CODES[name] for name in PAPER_RANGES])
_LOW, _HIGH = np.array(list(PAPER_RANGES.values()), dtype=np.float64).T


@dataclass(frozen=True, slots=True)
class RandAugment:
    """Random operations of the paper's table per image, each with uniform random magnitude, then Cutout.

    Operations are drawn with replacement. Moves take the nearest pixel and fill with black.

    Parameters
    ----------
    n_operations : int, default=3
        Number of operations per image.
    cutout : Cutout or None, default=Cutout()
        What is applied last; ``None`` for nothing.

    References
    ----------
    Cubuk et al., "RandAugment: Practical automated data augmentation with a reduced search space", 2020;
    Sohn et al., "FixMatch: Simplifying Semi-Supervised Learning with Consistency and Confidence", 2020.
    """

    n_operations: int = 3
    cutout: Cutout | None = Cutout()  # noqa: RUF009 (frozen, so safe to share)

    def __post_init__(self) -> None:
        check_integer(self.n_operations, "n_operations", minimum=0)

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        pixels = as_bytes(images)
        shape = (self.n_operations, len(pixels))
        drawn = integers(len(_CODES), shape, generator)
        magnitudes = _LOW[drawn] + (_HIGH - _LOW)[drawn] * uniform(shape, generator)
        for codes, magnitude in zip(_CODES[drawn], magnitudes, strict=True):
            pixels = apply_operations(pixels, codes, magnitude)
        if self.cutout is not None:
            pixels = self.cutout(pixels, generator)
        return like(pixels, images)
