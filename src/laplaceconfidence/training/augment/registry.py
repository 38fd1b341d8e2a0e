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
"""Augmentations that turn a weak view into a strong one; each takes its own settings as keywords."""

MIXING: dict[str, Callable[..., Mixing]] = {"mixup": MixUp, "cutmix": CutMix}
"""Mixings of the samples of a batch and of their targets."""


def build_strong(strong: str | Augmentation) -> Augmentation:
    """The strong augmentation for images.

    Parameters
    ----------
    strong : str or callable
        A name of ``STRONG``, for the default settings of that augmentation; or an augmentation.

    Returns
    -------
    Augmentation
    """
    if callable(strong):
        return strong
    return STRONG[check_choice(strong, "strong", tuple(STRONG))]()
