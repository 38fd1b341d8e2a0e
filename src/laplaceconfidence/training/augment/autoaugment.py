"""AutoAugment (Cubuk et al., 2019): the policy that was found on CIFAR-10."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.training.augment.operations import CODES, apply_operations
from laplaceconfidence.training.augment.pixels import as_bytes, like
from laplaceconfidence.training.augment.randomness import integers, signs, uniform
from laplaceconfidence.validation import check_integer

# Each sub-policy: twice an operation, its probability and its level from 0 to 9 (table 7 of the paper).
CIFAR10_POLICY = (
    (("invert", 0.1, 7), ("contrast", 0.2, 6)),
    (("rotate", 0.7, 2), ("translate_x", 0.3, 9)),
    (("sharpness", 0.8, 1), ("sharpness", 0.9, 3)),
    (("shear_y", 0.5, 8), ("translate_y", 0.7, 9)),
    (("autocontrast", 0.5, 8), ("equalize", 0.9, 2)),
    (("shear_y", 0.2, 7), ("posterize", 0.3, 7)),
    (("color", 0.4, 3), ("brightness", 0.6, 7)),
    (("sharpness", 0.3, 9), ("brightness", 0.7, 9)),
    (("equalize", 0.6, 5), ("equalize", 0.5, 1)),
    (("contrast", 0.6, 7), ("sharpness", 0.6, 5)),
    (("color", 0.7, 7), ("translate_x", 0.5, 8)),
    (("equalize", 0.3, 7), ("autocontrast", 0.4, 8)),
    (("translate_y", 0.4, 3), ("sharpness", 0.2, 6)),
    (("brightness", 0.9, 6), ("color", 0.2, 8)),
    (("solarize", 0.5, 2), ("invert", 0.0, 3)),
    (("equalize", 0.2, 0), ("autocontrast", 0.6, 0)),
    (("equalize", 0.2, 8), ("equalize", 0.6, 4)),
    (("color", 0.9, 9), ("equalize", 0.6, 6)),
    (("autocontrast", 0.8, 4), ("solarize", 0.2, 8)),
    (("brightness", 0.1, 3), ("color", 0.7, 0)),
    (("solarize", 0.4, 5), ("autocontrast", 0.9, 3)),
    (("translate_y", 0.9, 9), ("translate_y", 0.7, 9)),
    (("autocontrast", 0.9, 2), ("solarize", 0.8, 3)),
    (("equalize", 0.8, 8), ("invert", 0.1, 3)),
    (("translate_y", 0.7, 9), ("autocontrast", 0.9, 1)),
)

# The magnitude at level m is center +- m * reach / 9; without a sign where the third entry is False.
_SCALES = {
    "brightness": (1.0, 0.9, True),
    "color": (1.0, 0.9, True),
    "contrast": (1.0, 0.9, True),
    "sharpness": (1.0, 0.9, True),
    "posterize": (8.5, -4.0, False),  # the operation cuts off what rounding would: hence the half
    "solarize": (256.0, -256.0, False),
    "rotate": (0.0, 30.0, True),
    "shear_x": (0.0, 0.3, True),
    "shear_y": (0.0, 0.3, True),
    "translate_x": (0.0, 150 / 331, True),
    "translate_y": (0.0, 150 / 331, True),
    "autocontrast": (0.0, 0.0, False),
    "equalize": (0.0, 0.0, False),
    "invert": (0.0, 0.0, False),
}


@dataclass(frozen=True, slots=True)
class _Step:
    """The first or the second operation of all sub-policies."""

    codes: IntArray
    probabilities: FloatArray
    centers: FloatArray
    reaches: FloatArray
    signed: BoolArray


def _step(position: int) -> _Step:
    names, probabilities, levels = zip(*(sub_policy[position] for sub_policy in CIFAR10_POLICY), strict=True)
    centers, reaches, signed = zip(*(_SCALES[name] for name in names), strict=True)
    return _Step(
        codes=np.array([CODES[name] for name in names]),
        probabilities=np.array(probabilities),
        centers=np.array(centers),
        reaches=np.array(reaches) * np.array(levels) / 9,
        signed=np.array(signed),
    )


_STEPS = (_step(0), _step(1))


@dataclass(frozen=True, slots=True)
class AutoAugment:
    """One of the 25 CIFAR-10 sub-policies per image, each of its two operations with its own probability.

    Brightness, color, contrast and sharpness increase or decrease (1 +- 0.1 per level) and moves go in either
    direction, as in the usual PyTorch versions. Moves take the nearest pixel.

    Parameters
    ----------
    fill : int, default=128
        Gray level of pixels that a move brings in from outside.

    References
    ----------
    Cubuk et al., "AutoAugment: Learning Augmentation Strategies from Data", CVPR 2019.
    """

    fill: int = 128

    def __post_init__(self) -> None:
        check_integer(self.fill, "fill", minimum=0, maximum=255)

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        pixels = as_bytes(images)
        shape = (len(pixels),)
        policy = integers(len(CIFAR10_POLICY), shape, generator)
        for step in _STEPS:
            applied = uniform(shape, generator) < step.probabilities[policy]
            sign = np.where(step.signed[policy], signs(shape, generator), 1)
            codes = np.where(applied, step.codes[policy], CODES["identity"])
            magnitudes = step.centers[policy] + sign * step.reaches[policy]
            pixels = apply_operations(pixels, codes, magnitudes, self.fill)
        return like(pixels, images)
