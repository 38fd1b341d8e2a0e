"""Augmentations by name."""

from __future__ import annotations

from collections.abc import Callable

from laplaceconfidence.training.augment.augmix import AugMix
from laplaceconfidence.training.augment.autoaugment import AutoAugment
from laplaceconfidence.training.augment.mixing import CutMix, MixUp
from laplaceconfidence.training.augment.protocol import Augmentation, Mixing, Unchanged
from laplaceconfidence.training.augment.randaugment import RandAugment
from laplaceconfidence.validation import check_choice

STRONG: dict[str, Callable[..., Augmentation]] = {
    "randaugment": RandAugment,
    "autoaugment": AutoAugment,
    "augmix": AugMix,
    "none": Unchanged,
}
"""What turns a weak view into a strong one; each entry takes its own settings as keywords."""

MIXING: dict[str, Callable[..., Mixing]] = {"mixup": MixUp, "cutmix": CutMix}
"""What mixes a batch with itself, targets included."""


def build_strong(strong: str | Augmentation) -> Augmentation:
    """The strong augmentation of that name with its usual settings; anything callable is taken as it is."""
    if callable(strong):
        return strong
    return STRONG[check_choice(strong, "strong", tuple(STRONG))]()
