"""Mixing of pairs of samples and of their targets: MixUp and CutMix."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from laplaceconfidence.training.augment.pixels import check_images
from laplaceconfidence.training.augment.randomness import dirichlet, integers, permutation
from laplaceconfidence.validation import check_real, check_same_length, must_be


@dataclass(frozen=True, slots=True)
class MixUp:
    """MixUp: every sample is averaged with another one of the batch, with one weight per batch.

    Samples are floating point: images or feature vectors.

    Parameters
    ----------
    alpha : float, default=1
        The weight is drawn from Beta(alpha, alpha).
    own_part_larger : bool, default=False
        Whether the weight of the sample itself is at least one half, as in MixMatch and DivideMix.

    References
    ----------
    Zhang et al., "mixup: Beyond Empirical Risk Minimization", ICLR 2018.
    """

    alpha: float = 1.0
    own_part_larger: bool = False

    def __post_init__(self) -> None:
        check_real(self.alpha, "alpha", above=0)

    def __call__(self, images: Tensor, targets: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        if not images.is_floating_point():
            advice = "Convert them first: images.float() / 255."
            raise must_be("images", "floating point to be averaged", str(images.dtype), advice)
        _check_targets(images, targets)
        weight, partners = self.draw(len(images), generator)
        partners = partners.to(images.device)
        return _average(images, partners, weight), _average(targets, partners, weight)

    def draw(self, n_samples: int, generator: torch.Generator) -> tuple[float, Tensor]:
        """Draw a weight and partners, for methods that do the mixing themselves.

        Parameters
        ----------
        n_samples : int
            Number of samples in the batch.
        generator : torch.Generator
            Generator on the CPU.

        Returns
        -------
        weight : float
            Weight of each sample itself; its partner gets the rest.
        partners : Tensor of shape (n_samples,)
            Row of each sample's partner.
        """
        weight = float(dirichlet(self.alpha, 2, 1, generator)[0, 0])
        if self.own_part_larger:
            weight = max(weight, 1 - weight)
        return weight, permutation(n_samples, generator)


@dataclass(frozen=True, slots=True)
class CutMix:
    """CutMix: a box of every image is replaced by the same box of another image.

    The center of the box may be any pixel. Targets are mixed in proportion to the areas, after the box is
    cut at the edges. Images may be of any type.

    Parameters
    ----------
    alpha : float, default=1
        The share of the area that the box covers is 1 minus a number from Beta(alpha, alpha).

    References
    ----------
    Yun et al., "CutMix: Regularization Strategy to Train Strong Classifiers with Localizable Features", ICCV
    2019.
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        check_real(self.alpha, "alpha", above=0)

    def __call__(self, images: Tensor, targets: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        check_images(images)
        _check_targets(images, targets)
        height, width = images.shape[2:]
        box_part = math.sqrt(1 - float(dirichlet(self.alpha, 2, 1, generator)[0, 0]))
        top, bottom = _box_side(height, box_part, generator)
        left, right = _box_side(width, box_part, generator)
        partners = permutation(len(images), generator).to(images.device)
        mixed = images.clone()
        mixed[:, :, top:bottom, left:right] = images[:, :, top:bottom, left:right].index_select(0, partners)
        own_part = 1 - (bottom - top) * (right - left) / (height * width)
        return mixed, _average(targets, partners, own_part)


def _average(values: Tensor, partners: Tensor, weight: float) -> Tensor:
    return values * weight + values.index_select(0, partners) * (1 - weight)


def _box_side(length: int, part: float, generator: torch.Generator) -> tuple[int, int]:
    """Where the box begins and ends along one side of the image."""
    center = int(integers(length, (1,), generator)[0])
    half = int(length * part) // 2
    return max(0, center - half), min(length, center + half)


def _check_targets(images: Tensor, targets: Tensor) -> None:
    check_same_length("images", len(images), "targets", len(targets))
    if targets.ndim != 2 or not targets.is_floating_point():
        raise must_be(
            "targets",
            "floating point of shape (batch, classes)",
            f"{targets.dtype} of shape {tuple(targets.shape)}",
            "Labels become targets with torch.nn.functional.one_hot(labels, n_classes).float().",
        )
