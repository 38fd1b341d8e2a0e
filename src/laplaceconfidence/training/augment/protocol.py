"""The interfaces of augmentations and mixings, and two trivial augmentations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


class Augmentation(Protocol):
    """A callable that returns an augmented copy of a batch of images or feature vectors."""

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor: ...


class Mixing(Protocol):
    """A callable that mixes samples of a batch, and their soft targets in the same way."""

    def __call__(
        self, images: Tensor, targets: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]: ...


@dataclass(frozen=True, slots=True)
class Chain:
    """Augmentations one after the other, such as a weak one and then a strong one.

    Parameters
    ----------
    steps : tuple of Augmentation
        The augmentations in order.
    """

    steps: tuple[Augmentation, ...]

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        for step in self.steps:
            images = step(images, generator)
        return images


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The augmentation that returns the batch as it is: images or feature vectors."""

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        return images
