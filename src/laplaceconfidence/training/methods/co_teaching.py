"""Co-teaching (Han et al., 2018): two networks, each trained on the samples of small loss for the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from laplaceconfidence.training.methods.interface import Evidence, Method, Phase, Plan, State
from laplaceconfidence.training.methods.noise_rate import (
    NOISE_RATE,
    estimated_noise_rate,
    plan_before_estimate,
)
from laplaceconfidence.training.methods.published import MethodFacts, PublishedSettings
from laplaceconfidence.training.step import Step
from laplaceconfidence.validation import check_integer, check_real

_TRAINING = {
    "rounds": 200,
    "batch_size": 128,
    "optimizer": "adam",
    "learning_rate": 0.001,
    "momentum": 0.9,
    "weight_decay": 0.0,
    "weak": "none",
}


def published_by_rate(
    data: str, note: str, method: dict[str, object] | None = None
) -> tuple[PublishedSettings, ...]:
    """The authors' three kinds of noise on one data set; they pass the noise rate that they added."""
    cells = (("symmetric-excluding", 0.2), ("symmetric-excluding", 0.5), ("pair", 0.45))
    return tuple(
        PublishedSettings(
            data, noise, (rate,), "official code", {"forget_rate": rate} | (method or {}), _TRAINING, note
        )
        for noise, rate in cells
    )


@dataclass(frozen=True, slots=True)
class CoTeaching(Method):
    """Co-teaching: in every batch each network selects the samples with the smallest losses for the other.

    Two networks see the same batches. Each ranks the samples by its cross-entropy, and its peer is trained on
    those of small loss. The share that is left out rises to the share of wrong labels. The published code
    divides the mean loss once more by the number of samples; that is not followed.

    Parameters
    ----------
    forget_rate : float or None, default=None
        Share of every batch that is left out in the end: the share of wrong labels. ``None`` estimates it:
        the first ``ramp`` rounds leave nothing out and train on half of the labels, and the noise-aware audit
        of the features judges the other half. The history records the estimate as ``noise_rate``.
    ramp : int, default=10
        Rounds over which the share that is left out rises from 0 to ``forget_rate``.

    References
    ----------
    Han et al., "Co-teaching: Robust Training of Deep Neural Networks with Extremely Noisy Labels",
    NeurIPS 2018.
    """

    forget_rate: float | None = None
    ramp: int = 10
    n_networks: ClassVar[int] = 2
    facts: ClassVar[MethodFacts] = MethodFacts(
        'Han et al., "Co-teaching: Robust Training of Deep Neural Networks with Extremely Noisy Labels", '
        "NeurIPS",
        year=2018,
        cost=2.0,
        title="Co-teaching",
        needs=("noise rate",),
    )
    published: ClassVar[tuple[PublishedSettings, ...]] = (
        *published_by_rate(
            "CIFAR-10",
            "9-layer CNN with dropout; from round 80 the learning rate falls linearly to 0 and Adam's first "
            "beta becomes 0.1",
        ),
        *published_by_rate(
            "CIFAR-100",
            "9-layer CNN with dropout; from round 100 the learning rate falls linearly to 0 and Adam's first "
            "beta becomes 0.1",
        ),
    )

    def __post_init__(self) -> None:
        if self.forget_rate is not None:
            check_real(self.forget_rate, "forget_rate", at_least=0, below=1)
        check_integer(self.ramp, "ramp", minimum=1)

    def phases(self, round: int) -> tuple[Phase, ...]:
        return (Phase("co-teaching", trains=(0, 1), evidence=self._observed_in(round)),)

    def plan(self, phase: Phase, evidence: Evidence, state: State) -> Plan:
        plan = Method.plan(self, phase, evidence, state)
        if self.forget_rate is not None:
            return plan
        if evidence.round < self.ramp:
            return plan_before_estimate(evidence)
        return replace(plan, measures={NOISE_RATE: estimated_noise_rate("forget_rate", evidence, state)})

    def loss(self, step: Step) -> Tensor:
        view, labels = step.batch.weak(), step.batch.labels
        losses = [functional.cross_entropy(net(view), labels, reduction="none") for net in step.networks]
        return exchanged_loss(step, losses, self.kept_share(step))

    def kept_share(self, step: Step) -> float:
        """The share of a batch that the networks are trained on."""
        rate = step.plan.measures.get(NOISE_RATE, 0.0) if self.forget_rate is None else self.forget_rate
        return 1 - rate * min(step.round / self.ramp, 1)

    def _observed_in(self, round: int) -> tuple[int, ...]:
        """Both networks in the round in which the noise rate is estimated."""
        return (0, 1) if self.forget_rate is None and round == self.ramp else ()


def exchanged_loss(
    step: Step, losses: Sequence[Tensor], share: float, candidates: Tensor | None = None
) -> Tensor:
    """Each network's mean loss on the samples that have small losses for the other one.

    Parameters
    ----------
    step : Step
        The step.
    losses : sequence of two Tensor of shape (b,)
        Losses of this process's samples, of either network.
    share : float
        Share of the candidates that is selected; at least one of them is.
    candidates : Tensor of shape (b,), optional
        Which of this process's samples may be selected; by default all.

    Returns
    -------
    Tensor
        A scalar, 0 if the whole batch has no candidate.
    """
    first, second = (_small_losses(step, own, share, candidates) for own in losses)
    # A mean over the chosen samples of the whole batch, of which this process may hold any number.
    return (losses[0] * second).mean() + (losses[1] * first).mean()


def _small_losses(step: Step, losses: Tensor, share: float, candidates: Tensor | None) -> Tensor:
    """(b,) batch size / number of chosen for the samples of small loss, 0 for the others."""
    of_all = step.gather_rows(losses)
    order = of_all.argsort(stable=True)
    if candidates is not None:
        order = order[step.gather_rows(candidates)[order]]
    weights = torch.zeros_like(of_all)
    if len(order):
        n_chosen = max(1, int(share * len(order)))
        weights[order[:n_chosen]] = len(of_all) / n_chosen
    return step.own_rows(weights)
