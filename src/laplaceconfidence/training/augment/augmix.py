"""AugMix (Hendrycks et al., 2020), without its consistency loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from laplaceconfidence.training.augment.operations import CODES, apply_operations
from laplaceconfidence.training.augment.pixels import as_bytes, like
from laplaceconfidence.training.augment.randomness import dirichlet, integers, signs, uniform
from laplaceconfidence.validation import check_integer, check_real

# The magnitude at level l is start + l * slope, with a random sign where the third entry is True.
_SCALES = {
    "autocontrast": (0.0, 0.0, False),
    "equalize": (0.0, 0.0, False),
    "posterize": (5.0, -0.4, False),  # 4 bits, 3 from level 2.5 on: the operation cuts off the fraction
    "solarize": (256.0, -25.6, False),
    "rotate": (0.0, 3.0, True),
    "shear_x": (0.0, 0.03, True),
    "shear_y": (0.0, 0.03, True),
    "translate_x": (0.0, 1 / 30, True),
    "translate_y": (0.0, 1 / 30, True),
}
_CODES = np.array([CODES[name] for name in _SCALES])
_START, _SLOPE, _SIGNED = np.array(list(_SCALES.values()), dtype=np.float64).T
_LOWEST_LEVEL = 0.1


@dataclass(frozen=True, slots=True)
class AugMix:
    """The image mixed with a random mixture of chains of operations on it.

    Moves take the nearest pixel and fill with black.

    Parameters
    ----------
    width : int, default=3
        Number of chains.
    depth : int, default=3
        Largest number of operations per chain; the smallest is 1.
    severity : float, default=3
        Highest level of an operation, at most 10.
    alpha : float, default=1
        Concentration of the distributions that the weights of both mixtures are drawn from.

    References
    ----------
    Hendrycks et al., "AugMix: A Simple Data Processing Method to Improve Robustness and Uncertainty", ICLR
    2020.
    """

    width: int = 3
    depth: int = 3
    severity: float = 3.0
    alpha: float = 1.0

    def __post_init__(self) -> None:
        check_integer(self.width, "width", minimum=1)
        check_integer(self.depth, "depth", minimum=1)
        check_real(self.severity, "severity", at_least=_LOWEST_LEVEL, at_most=10)
        check_real(self.alpha, "alpha", above=0)

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        pixels = as_bytes(images)
        batch = len(pixels)
        chains = self._chains(pixels, generator).view(self.width, *pixels.shape)
        within = dirichlet(self.alpha, self.width, batch, generator)  # (batch, width)
        with_image = dirichlet(self.alpha, 2, batch, generator)  # (batch, 2): the image, its chains
        weights = np.concatenate([with_image[:, :1], within * with_image[:, 1:]], axis=1).astype(np.float32)
        own, *of_chains = torch.from_numpy(weights.T).to(pixels.device).view(self.width + 1, batch, 1, 1, 1)
        mixed = own * pixels
        for weight, chain in zip(of_chains, chains, strict=True):
            mixed += weight * chain
        return like((mixed + 0.5).clamp_(0, 255).to(torch.uint8), images)

    def _chains(self, pixels: Tensor, generator: torch.Generator) -> Tensor:
        """(width * batch, ...) every chain of every image: all first operations, all second ones, ..."""
        shape = (self.width * len(pixels),)
        lengths = integers(self.depth, shape, generator) + 1
        chains = pixels.repeat(self.width, 1, 1, 1)
        for step in range(self.depth):
            drawn = integers(len(_CODES), shape, generator)
            levels = _LOWEST_LEVEL + (self.severity - _LOWEST_LEVEL) * uniform(shape, generator)
            sign = np.where(_SIGNED[drawn], signs(shape, generator), 1)
            codes = np.where(step < lengths, _CODES[drawn], CODES["identity"])
            chains = apply_operations(chains, codes, _START[drawn] + sign * levels * _SLOPE[drawn])
        return chains
