"""Curriculum loss (Lyu and Tsang, 2020): CL and its noise-pruned version, NPCL."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from laplaceconfidence.training.methods.interface import Evidence, Method, Phase, Plan, State
from laplaceconfidence.training.methods.noise_rate import (
    NOISE_RATE,
    estimated_noise_rate,
    plan_before_estimate,
)
from laplaceconfidence.training.methods.published import MethodFacts, PublishedSettings
from laplaceconfidence.training.methods.warm_up import WARM_UP
from laplaceconfidence.training.step import Step
from laplaceconfidence.validation import check_integer, check_real

_TRAINING = {"rounds": 200, "batch_size": 128, "optimizer": "adam", "learning_rate": 0.001}
_NOTE = "9-layer CNN as for Co-teaching; the official code is one loss without a training script"


def _settings(data: str, noise: str, rate: float, warmup: int) -> PublishedSettings:
    return PublishedSettings(
        data, noise, (rate,), "unverified", {"noise_rate": rate, "warmup": warmup}, _TRAINING, _NOTE
    )


@dataclass(frozen=True, slots=True)
class CurriculumLoss(Method):
    """Curriculum loss: a tight bound on the 0-1 loss, which selects the samples of a batch to train on.

    After some rounds of a soft hinge loss on all samples, each batch of m selects v in {0, 1} that minimizes
    max(sum of v * hinge loss, K - sum of v), where K = (1 - e)^2 m + (1 - e) * (number of errors) for a noise
    rate e. That is NPCL; with e = 0 it is CL, which needs no noise rate. The network is trained on the mean
    soft hinge loss of the selected samples. The minimum is exact: the published code may select one sample
    more.

    Parameters
    ----------
    noise_rate : float or None, default=None
        Share of wrong labels, in [0, 1): 0 is CL. ``None`` estimates it: the warm-up trains on half of the
        labels, and the noise-aware audit of the features judges the other half. The history records the
        estimate as ``noise_rate``.
    warmup : int, default=10
        Rounds of soft hinge loss on all samples that come first (burn-in in the paper).

    References
    ----------
    Lyu and Tsang, "Curriculum Loss: Robust Learning and Generalization against Label Corruption", ICLR 2020.
    """

    noise_rate: float | None = None
    warmup: int = 10
    n_networks: ClassVar[int] = 1
    facts: ClassVar[MethodFacts] = MethodFacts(
        'Lyu and Tsang, "Curriculum Loss: Robust Learning and Generalization against Label Corruption", ICLR',
        year=2020,
        cost=1.0,
        needs=("noise rate",),
        title="curriculum loss",
    )
    published: ClassVar[tuple[PublishedSettings, ...]] = (
        _settings("MNIST", "symmetric-excluding", 0.5, 5),
        _settings("CIFAR-10", "symmetric-excluding", 0.2, 10),
        _settings("CIFAR-10", "symmetric-excluding", 0.5, 10),
        _settings("CIFAR-10", "pair", 0.35, 10),
    )

    def __post_init__(self) -> None:
        if self.noise_rate is not None:
            check_real(self.noise_rate, "noise_rate", at_least=0, below=1)
        # Without a plain phase there are no features to estimate the rate from.
        check_integer(self.warmup, "warmup", minimum=0 if self.noise_rate is not None else 1)

    def phases(self, round: int) -> tuple[Phase, ...]:
        if round < self.warmup:
            return (Phase(WARM_UP, trains=(0,)),)
        observed = (0,) if self.noise_rate is None and round == self.warmup else ()
        return (Phase("curriculum", trains=(0,), evidence=observed),)

    def plan(self, phase: Phase, evidence: Evidence, state: State) -> Plan:
        plan = Method.plan(self, phase, evidence, state)
        if self.noise_rate is not None:
            return plan
        if phase.name == WARM_UP:
            return plan_before_estimate(evidence)
        return replace(plan, measures={NOISE_RATE: estimated_noise_rate("noise_rate", evidence, state)})

    def loss(self, step: Step) -> Tensor:
        logits, labels = step.trained(step.batch.weak()), step.batch.labels
        soft = soft_hinge(logits, labels)
        if step.phase.name == WARM_UP:
            return soft.mean()
        rate = step.plan.measures[NOISE_RATE] if self.noise_rate is None else self.noise_rate
        wrong = step.gather_rows((logits.argmax(dim=1) != labels).float())
        selected = curriculum_selection(step.gather_rows(hinge(logits, labels)), wrong, rate)
        # A mean over the selected samples of the whole batch, of which this process may hold any number.
        weights = step.own_rows(selected / selected.mean())
        step.measure("selected_share", selected.mean())
        return (soft * weights).mean()


def hinge(logits: Tensor, labels: Tensor) -> Tensor:
    """(b,) the multi-class hinge loss: 1 - own logit + largest other one, at least 0."""
    own, other = _own_and_largest_other(logits, labels)
    return (1 - own + other).clamp_min(0)


def soft_hinge(logits: Tensor, labels: Tensor) -> Tensor:
    """(b,) the hinge loss where the prediction is right, otherwise 1 + cross-entropy, which is smooth."""
    own, other = _own_and_largest_other(logits, labels)
    right = logits.argmax(dim=1) == labels
    return torch.where(right, (1 - own + other).clamp_min(0), 1 - own + logits.logsumexp(dim=1))


def curriculum_selection(losses: Tensor, wrong: Tensor, noise_rate: float) -> Tensor:
    """The samples that minimize max(sum of v * loss, K - sum of v); at least one is selected.

    Parameters
    ----------
    losses : Tensor of shape (m,)
        Losses of a whole batch, not negative.
    wrong : Tensor of shape (m,)
        1 where the prediction differs from the given label, 0 elsewhere.
    noise_rate : float
        The share of wrong labels, e in K = (1 - e)^2 m + (1 - e) * (number of errors).

    Returns
    -------
    Tensor of shape (m,)
        1 for selected samples, 0 for the others.
    """
    kept = 1 - noise_rate
    bound = kept**2 * len(losses) + kept * wrong.sum()
    ordered, order = losses.sort(stable=True)
    # Of any number of samples the smallest losses are best; the first term grows, the second one falls.
    counts = torch.arange(1, len(losses) + 1, device=losses.device)
    n_selected = max(1, int((ordered.cumsum(0) <= bound + 1 - counts).sum()))
    selected = torch.zeros_like(losses)
    selected[order[:n_selected]] = 1
    return selected


def _own_and_largest_other(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    own = logits.gather(1, labels.unsqueeze(1)).squeeze(1)
    others = logits.scatter(1, labels.unsqueeze(1), -torch.inf)
    return own, others.max(dim=1).values
