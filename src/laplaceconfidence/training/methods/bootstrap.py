"""Bootstrapping (Reed et al., 2014): targets are part given label, part prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from torch.nn import functional

from laplaceconfidence.training.methods.interface import Method, Phase
from laplaceconfidence.training.methods.published import MethodFacts, PublishedSettings
from laplaceconfidence.training.step import Step
from laplaceconfidence.validation import check_boolean, check_choice, check_real

PUBLISHED_BETAS = {"soft": 0.95, "hard": 0.8}


@dataclass(frozen=True, slots=True)
class Bootstrap(Method):
    """Bootstrapping: cross-entropy of beta * given label + (1 - beta) * the network's own prediction.

    One network, one pass over the labeled samples per round. The soft variant takes the predicted
    distribution: with gradients through it, as in the paper, its second term is the entropy of the
    predictions, which is minimized. The hard variant takes the most probable class. Right and wrong labels
    are trusted equally, and there is no state.

    Parameters
    ----------
    variant : {"soft", "hard"}, default="soft"
        Whether the prediction in the target is the distribution or its most probable class.
    beta : float or None, default=None
        Weight of the given label, in (0, 1]; ``None`` takes the paper's 0.95 (soft) or 0.8 (hard).
    stop_gradient : bool, default=False
        Whether the predicted part of a soft target is taken as a constant. The paper does not, but several
        re-implementations do, which is another method.

    References
    ----------
    Reed et al., "Training Deep Neural Networks on Noisy Labels with Bootstrapping", 2014.
    """

    variant: str = "soft"
    beta: float | None = None
    stop_gradient: bool = False
    n_networks: ClassVar[int] = 1
    facts: ClassVar[MethodFacts] = MethodFacts(
        'Reed et al., "Training Deep Neural Networks on Noisy Labels with Bootstrapping", ICLR workshop',
        year=2014,
        cost=1.0,
    )
    published: ClassVar[tuple[PublishedSettings, ...]] = (
        PublishedSettings(
            data="MNIST",
            noise="pair",
            rates=(0.3, 0.4, 0.5),
            source="unverified",
            note="beta 0.95 (soft) or 0.8 (hard); stopping rule and batch size were not published; labels "
            "were permuted, and the paper has no CIFAR",
        ),
    )

    def __post_init__(self) -> None:
        check_choice(self.variant, "variant", tuple(PUBLISHED_BETAS))
        if self.beta is not None:
            check_real(self.beta, "beta", above=0, at_most=1)
        check_boolean(self.stop_gradient, "stop_gradient")

    def phases(self, round: int) -> tuple[Phase, ...]:
        return (Phase("training", trains=(0,)),)

    def loss(self, step: Step) -> Tensor:
        log_p = step.trained(step.batch.weak()).log_softmax(dim=1)
        predicted = log_p.exp()
        if self.variant == "hard":
            predicted = functional.one_hot(log_p.argmax(dim=1), log_p.shape[1]).to(log_p.dtype)
        elif self.stop_gradient:
            predicted = predicted.detach()
        beta = PUBLISHED_BETAS[self.variant] if self.beta is None else self.beta
        given = functional.nll_loss(log_p, step.batch.labels)
        return beta * given - (1 - beta) * (predicted * log_p).sum(dim=1).mean()
