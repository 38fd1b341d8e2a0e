"""AugDesc (Nishi et al., 2021): DivideMix that guesses on weak views and is trained on strong ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from laplaceconfidence.training.methods.dividemix import LOSS_WEIGHTS, DivideMix, published_setting
from laplaceconfidence.training.methods.published import MethodFacts, PublishedSettings
from laplaceconfidence.training.step import Batch
from laplaceconfidence.validation import check_choice

_SCHEDULES = {
    ("CIFAR-10", "symmetric", 0.2): (300, 150),
    ("CIFAR-10", "symmetric", 0.5): (300, 150),
    ("CIFAR-10", "symmetric", 0.8): (350, 200),
    ("CIFAR-10", "symmetric", 0.9): (350, 250),
    ("CIFAR-10", "asymmetric", 0.4): (350, 250),
    **{("CIFAR-100", "symmetric", rate): (400, 300) for rate in (0.2, 0.5, 0.8, 0.9)},
}


@dataclass(frozen=True, slots=True)
class AugDesc(DivideMix):
    """AugDesc: DivideMix with two kinds of views, weak ones to guess labels and strong ones to train on.

    Labels are refined and guessed from two weak views of each sample; the mixed batch that the network is
    trained on consists of two strong views. The strong view is the parameter ``strong`` of the run: the paper
    takes "autoaugment", and "randaugment" as a variant. Losses for the split come from samples without
    augmentation, as in the published code. All other settings are those of ``DivideMix``.

    Parameters
    ----------
    warmup, threshold, sharpen, mix_alpha, unlabelled_weight, ramp : as for ``DivideMix``
    average_losses, entropy_penalty, prior_weight : as for ``DivideMix``
    warmup_view : {"weak", "strong"}, default="weak"
        Views that the networks see in the warm-up: WAW or SAW in the paper. With strong ones the run at 90%
        noise failed in the published code.

    References
    ----------
    Nishi et al., "Augmentation Strategies for Learning with Noisy Labels", CVPR 2021.
    """

    warmup_view: str = "weak"
    facts: ClassVar[MethodFacts] = MethodFacts(
        'Nishi et al., "Augmentation Strategies for Learning with Noisy Labels", CVPR', year=2021, cost=20 / 3
    )
    published: ClassVar[tuple[PublishedSettings, ...]] = tuple(
        published_setting(
            *cell,
            "official code",
            rounds=rounds,
            learning_rate_drops=(drop,),
            batch_size=256,
            strong="autoaugment",
        )
        for cell, (rounds, drop) in _SCHEDULES.items()
        if cell in LOSS_WEIGHTS
    )

    def __post_init__(self) -> None:
        DivideMix.__post_init__(self)
        check_choice(self.warmup_view, "warmup_view", ("weak", "strong"))

    def _training_views(self, batches: Sequence[Batch], guessed_from: Sequence[Tensor]) -> list[Tensor]:
        return [view for batch in batches for view in (batch.strong(), batch.strong())]

    def _warms_up_on_strong_views(self) -> bool:
        return self.warmup_view == "strong"
