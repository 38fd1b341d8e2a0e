"""What an augmentation looks like to the training loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


class Augmentation(Protocol):
    """From a batch of images to another view of it."""

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor: ...


class Mixing(Protocol):
    """From a batch and its soft targets to mixtures of both."""

    def __call__(
        self, images: Tensor, targets: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]: ...


@dataclass(frozen=True, slots=True)
class Chain:
    """Augmentations one after the other, such as a weak one and then a strong one."""

    steps: tuple[Augmentation, ...]

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        for step in self.steps:
            images = step(images, generator)
        return images


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The view that is the batch itself; it takes feature vectors as well as images."""

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        return images
