"""Co-teaching (Han et al., 2018): two networks, each trained on the samples of small loss for the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from laplaceconfidence.training.methods.interface import Method, Phase
from laplaceconfidence.training.step import Step
from laplaceconfidence.validation import check_integer, check_real


@dataclass(frozen=True, slots=True)
class CoTeaching(Method):
    """Co-teaching: in every batch each network selects the samples with the smallest losses for the other.

    The published code divides the mean loss once more by the number of samples; that is not followed.

    Parameters
    ----------
    forget_rate : float, default=0.2
        Share of every batch that is left out in the end. It should be the share of wrong labels, which the
        method does not estimate.
    ramp : int, default=10
        Rounds over which the share that is left out rises from 0 to ``forget_rate``.

    References
    ----------
    Han et al., "Co-teaching: Robust Training of Deep Neural Networks with Extremely Noisy Labels",
    NeurIPS 2018.
    """

    forget_rate: float = 0.2
    ramp: int = 10
    n_networks: ClassVar[int] = 2

    def __post_init__(self) -> None:
        check_real(self.forget_rate, "forget_rate", at_least=0, below=1)
        check_integer(self.ramp, "ramp", minimum=1)

    def phases(self, round: int) -> tuple[Phase, ...]:
        return (Phase("co-teaching", trains=(0, 1)),)

    def loss(self, step: Step) -> Tensor:
        view, labels = step.batch.weak(), step.batch.labels
        losses = [functional.cross_entropy(net(view), labels, reduction="none") for net in step.networks]
        share = self.kept_share(step.round)
        first, second = (_small_losses(step, own, share) for own in losses)
        # A mean over the chosen samples of the whole batch, of which this process may hold any number.
        return (losses[0] * second).mean() + (losses[1] * first).mean()

    def kept_share(self, round: int) -> float:
        """The share of a batch that the networks are trained on in a round, counted from 0."""
        return 1 - self.forget_rate * min(round / self.ramp, 1)


def _small_losses(step: Step, losses: Tensor, share: float) -> Tensor:
    """(b,) batch size / number of chosen for the samples of small loss, 0 for the others."""
    of_all = step.gather_rows(losses)
    n_chosen = max(1, int(share * len(of_all)))
    weights = torch.zeros_like(of_all)
    weights[of_all.argsort(stable=True)[:n_chosen]] = len(of_all) / n_chosen
    return step.own_rows(weights)
