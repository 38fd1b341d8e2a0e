"""Weak and strong views of raw inputs, and their normalization, on the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from laplaceconfidence.training.augment.protocol import Augmentation, Chain, Unchanged
from laplaceconfidence.training.augment.registry import build_strong
from laplaceconfidence.training.augment.resized_crop import RandomResizedCrop, center_crop
from laplaceconfidence.training.augment.weak import WeakAugment
from laplaceconfidence.validation import check_choice, check_real, must_be

_SMALLEST_DEVIATION = 1e-6

View = str | Augmentation
"""A view of samples, by name or as a callable."""


@dataclass(frozen=True, slots=True)
class MaskFeatures:
    """Set random entries of feature vectors to 0.

    Parameters
    ----------
    share : float
        Probability that an entry becomes 0.
    """

    share: float

    def __post_init__(self) -> None:
        check_real(self.share, "share", at_least=0, below=1)

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        kept = torch.rand(images.shape, generator=generator) >= self.share
        return images * kept.to(images.device)


FEATURE_VIEWS: dict[str, Callable[[], Augmentation]] = {
    "mask": lambda: MaskFeatures(0.3),
    "none": Unchanged,
}
"""Strong views of feature vectors."""


@dataclass(frozen=True, slots=True, eq=False)
class SampleViews:
    """How inputs are augmented and normalized. Shapes: images (b, c, h, w), feature vectors (b, d)."""

    weak: Augmentation
    strong: tuple[Augmentation, ...]  # one or more, the weak view included in each
    mean: Tensor  # broadcasts against a batch of inputs
    deviation: Tensor
    channels_last: bool = False
    crop: int | None = None  # side of the center that networks see of images that are not augmented

    def normalized(self, inputs: Tensor) -> Tensor:
        """Inputs with mean 0 and deviation 1; bytes are scaled to [0, 1] first."""
        return normalized(inputs, self.mean, self.deviation, channels_last=self.channels_last, crop=self.crop)


def normalized(
    inputs: Tensor, mean: Tensor, deviation: Tensor, *, channels_last: bool, crop: int | None = None
) -> Tensor:
    """Inputs with mean 0 and deviation 1; bytes are scaled to [0, 1] first, images may be cropped."""
    if crop is not None and inputs.ndim == 4:
        inputs = center_crop(inputs, crop)
    values = inputs.float() / 255 if inputs.dtype == torch.uint8 else inputs.float()
    values = (values - mean) / deviation
    if channels_last and values.ndim == 4:
        values = values.contiguous(memory_format=torch.channels_last)
    return values


def crop_of(weak: str | Augmentation) -> int | None:
    """The side of the center that networks see of images that are not augmented; ``None`` for all of them."""
    return weak.size if isinstance(weak, RandomResizedCrop) else None


def mirrors_images(weak: Augmentation) -> bool:
    """Whether a weak view mirrors images; unknown ones of users are taken not to."""
    return isinstance(weak, (WeakAugment, RandomResizedCrop)) and weak.flip


def network_shape(sample_shape: tuple[int, ...], crop: int | None) -> tuple[int, ...]:
    """The shape of what networks see of one sample."""
    return sample_shape if crop is None or len(sample_shape) != 3 else (sample_shape[0], crop, crop)


def build_augmentations(
    weak: View, strong: View | Sequence[View], input_shape: tuple[int, ...]
) -> tuple[Augmentation, tuple[Augmentation, ...]]:
    """The weak view and the strong ones (weak, then one of ``strong``) for samples of a shape."""
    several = strong if isinstance(strong, (list, tuple)) else (strong,)
    if not several:
        raise must_be("strong", "at least one view", strong)
    first = _weak_view(weak)
    build = _strong_features if len(input_shape) == 1 else build_strong
    return first, tuple(Chain((first, build(one))) for one in several)


def default_weak(input_shape: tuple[int, ...]) -> str | Augmentation:
    """The weak view if neither the user nor the preset states one: crops and flips for images."""
    if len(input_shape) == 1:
        return "none"
    # The paper pads images of 32 pixels by 4; smaller ones would lose too much of their content.
    return WeakAugment(padding=max(1, min(4, min(input_shape[1:]) // 8)))


def _weak_view(weak: str | Augmentation) -> Augmentation:
    if callable(weak):
        return weak
    check_choice(weak, "weak", ("none",))
    return Unchanged()


def _strong_features(strong: View) -> Augmentation:
    if callable(strong):
        return strong
    if strong not in FEATURE_VIEWS:
        rule = f"one of {', '.join(map(repr, FEATURE_VIEWS))} for feature vectors, or a callable"
        raise must_be("strong", rule, strong, "Images are given as (n, height, width, channels).")
    return FEATURE_VIEWS[strong]()


def input_statistics(inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and deviation over the samples, per channel of images and per feature of vectors."""
    values = inputs.double() / 255 if inputs.dtype == torch.uint8 else inputs.double()
    over = (0, 2, 3) if inputs.ndim == 4 else (0,)
    mean = values.mean(dim=over, keepdim=True)
    deviation = values.std(dim=over, keepdim=True, correction=0)
    deviation = torch.where(deviation > _SMALLEST_DEVIATION, deviation, 1.0)  # constant inputs are not scaled
    return mean.float(), deviation.float()
