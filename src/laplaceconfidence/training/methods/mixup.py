"""MixUp (Zhang et al., 2018): training on averages of pairs of samples and of their labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from torch.nn import functional

from laplaceconfidence.training.augment.mixing import MixUp
from laplaceconfidence.training.losses import soft_cross_entropy
from laplaceconfidence.training.methods.batch_partners import draw_partners, mix_rows
from laplaceconfidence.training.methods.interface import Method, Phase
from laplaceconfidence.training.methods.published import MethodFacts, PublishedSettings, Source
from laplaceconfidence.training.step import Step
from laplaceconfidence.validation import check_real

_TRAINING = {
    "network": "preact_resnet18",
    "rounds": 200,
    "batch_size": 128,
    "optimizer": "sgd",
    "learning_rate": 0.1,
    "momentum": 0.9,
    "weight_decay": 1e-4,
    "learning_rate_drops": (100, 150),
}


def _settings(noise: str, rates: tuple[float, ...], alpha: float, source: Source) -> PublishedSettings:
    return PublishedSettings("CIFAR-10", noise, rates, source, {"alpha": alpha}, _TRAINING)


@dataclass(frozen=True, slots=True)
class MixUpTraining(Method):
    """MixUp: cross-entropy on averages of two samples, with the average of their two given labels.

    One network, one pass over the labeled samples per round. One weight per batch is drawn from
    Beta(alpha, alpha); each sample is averaged with a random other one of the batch. Mixed labels cannot be
    memorized as easily as single wrong ones. The larger alpha, the closer the weights are to one half.

    Parameters
    ----------
    alpha : float, default=32
        Parameter of the beta distribution. The paper takes 1 for clean labels, 8 at 20% noise and 32 at 50%
        and 80% noise; 32 is also what the comparisons of later papers use.

    References
    ----------
    Zhang et al., "mixup: Beyond Empirical Risk Minimization", ICLR 2018.
    """

    alpha: float = 32.0
    n_networks: ClassVar[int] = 1
    facts: ClassVar[MethodFacts] = MethodFacts(
        'Zhang et al., "mixup: Beyond Empirical Risk Minimization", ICLR',
        year=2018,
        cost=1.0,
        title="MixUp",
    )
    published: ClassVar[tuple[PublishedSettings, ...]] = (
        _settings("none", (), 1.0, "official code"),
        _settings("symmetric", (0.2,), 8.0, "unverified"),
        _settings("symmetric", (0.5, 0.8), 32.0, "unverified"),
    )

    def __post_init__(self) -> None:
        check_real(self.alpha, "alpha", above=0)

    def phases(self, round: int) -> tuple[Phase, ...]:
        return (Phase("training", trains=(0,)),)

    def loss(self, step: Step) -> Tensor:
        return mixup_loss(step, self.alpha)


def mixup_loss(step: Step, alpha: float) -> Tensor:
    """Cross-entropy of mixed labels on mixed weak views.

    Parameters
    ----------
    step : Step
        A step whose samples all have a label.
    alpha : float
        The weight is drawn from Beta(alpha, alpha).

    Returns
    -------
    Tensor
        A scalar.
    """
    view = step.batch.weak()
    given = functional.one_hot(step.batch.labels, step.problem.n_classes).to(view.dtype)
    weight, partners = draw_partners(step, [view], MixUp(alpha))
    inputs = mix_rows(step, [view], partners, weight)
    return soft_cross_entropy(step.trained(inputs), mix_rows(step, [given], partners, weight))
