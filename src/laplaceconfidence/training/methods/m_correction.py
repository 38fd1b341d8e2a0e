"""M-correction (Arazo et al., 2019): a Beta mixture of the losses guides bootstrapping and MixUp."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.confidence.beta_mixture import BetaLossMixture
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.training.augment.mixing import MixUp
from laplaceconfidence.training.losses import refurbish, soft_cross_entropy, uniform_prior_divergence
from laplaceconfidence.training.methods.batch_partners import draw_partners, mix_rows, partner_rows
from laplaceconfidence.training.methods.confidences import estimate_confidence, mean_confidence
from laplaceconfidence.training.methods.interface import Evidence, Method, Phase, Plan, State
from laplaceconfidence.training.methods.mixup import mixup_loss
from laplaceconfidence.training.methods.published import MethodFacts, PublishedSettings
from laplaceconfidence.training.step import Step
from laplaceconfidence.validation import check_choice, check_integer, check_real

HARD, DYNAMIC = "M-DYR-H", "MD-DYR-SH"
_MIXUP, _DYNAMIC_MIXUP, _BOOTSTRAPPING = "mixup", "dynamic mixup", "bootstrapping"
_BORDER = 1e-4  # posteriors stay this far from 0 and 1
_LAST_TEMPERATURE = 0.001

_TRAINING = {
    "network": "preact_resnet18_normalized_stem",
    "rounds": 300,
    "batch_size": 128,
    "optimizer": "sgd",
    "learning_rate": 0.1,
    "momentum": 0.9,
    "weight_decay": 1e-4,
    "learning_rate_drops": (100, 250),
}


def _settings(variant: str, data: str, rates: tuple[float, ...]) -> PublishedSettings:
    # The parser's own defaults (30 rounds, no MixUp, no prior term) are not those of the paper's runs.
    return PublishedSettings(data, "symmetric", rates, "official code", {"variant": variant}, _TRAINING)


@dataclass(frozen=True, slots=True)
class MCorrection(Method):
    """M-correction: targets mix given label and prediction by how far the loss of the label can be trusted.

    One network is first trained with plain MixUp. Then, before each round, two Beta distributions are fitted
    to the losses, which give the probability w that a label is wrong; each target becomes (1 - w) * given
    label + w * prediction on the sample before mixing. M-DYR-H takes the most probable class and MixUp's
    usual weights. MD-DYR-SH mixes in proportion to 1 - w, and its predictions turn from soft to hard. The
    published code evaluates w at the loss in the current batch; here it is that of the last fit, without
    augmentation.

    Parameters
    ----------
    variant : {"M-DYR-H", "MD-DYR-SH"}, default="M-DYR-H"
        Hard bootstrapping; or dynamic MixUp with soft to hard bootstrapping, which the paper takes for the
        highest noise rates.
    warmup : int, default=105
        Rounds of plain MixUp that come first.
    dynamic_mixup : int, default=5
        Rounds of dynamic MixUp on given labels between the warm-up and bootstrapping; MD-DYR-SH only.
    mix_alpha : float, default=32
        Parameter of the beta distribution that MixUp draws its weights from.
    prior_weight : float, default=1
        Weight of the term that keeps the mean prediction close to uniform over the classes.

    References
    ----------
    Arazo et al., "Unsupervised Label Noise Modeling and Loss Correction", ICML 2019.
    """

    variant: str = HARD
    warmup: int = 105
    dynamic_mixup: int = 5
    mix_alpha: float = 32.0
    prior_weight: float = 1.0
    n_networks: ClassVar[int] = 1
    facts: ClassVar[MethodFacts] = MethodFacts(
        'Arazo et al., "Unsupervised Label Noise Modeling and Loss Correction", ICML',
        year=2019,
        cost=5 / 3,
        title="M-correction",
    )
    published: ClassVar[tuple[PublishedSettings, ...]] = tuple(
        _settings(variant, data, rates)
        for data in ("CIFAR-10", "CIFAR-100")
        for variant, rates in ((HARD, (0.2, 0.5, 0.8)), (DYNAMIC, (0.9,)))
    )

    def __post_init__(self) -> None:
        check_choice(self.variant, "variant", (HARD, DYNAMIC))
        check_integer(self.warmup, "warmup", minimum=0)
        check_integer(self.dynamic_mixup, "dynamic_mixup", minimum=0)
        check_real(self.mix_alpha, "mix_alpha", above=0)
        check_real(self.prior_weight, "prior_weight", at_least=0)

    def phases(self, round: int) -> tuple[Phase, ...]:
        if round < self.warmup:
            return (Phase(_MIXUP, trains=(0,)),)
        name = _BOOTSTRAPPING if round >= self._bootstrapping_from else _DYNAMIC_MIXUP
        # Bootstrapping predicts the unmixed images as well, without gradient.
        cost = 4 / 3 if name == _BOOTSTRAPPING else 1.0
        return (Phase(name, trains=(0,), evidence=(0,), cost=cost),)

    def plan(self, phase: Phase, evidence: Evidence, state: State) -> Plan:
        if phase.name == _MIXUP:
            return Method.plan(self, phase, evidence, state)
        confidence = estimate_confidence(BetaLossMixture(), evidence, 0)
        return Plan.over(np.flatnonzero(evidence.labels != MISSING), confidence=confidence)

    def loss(self, step: Step) -> Tensor:
        if step.phase.name == _MIXUP:
            return mixup_loss(step, self.mix_alpha)
        bootstraps = step.phase.name == _BOOTSTRAPPING
        right = step.plan.tensors["confidence"][step.batch.index].clamp(_BORDER, 1 - _BORDER)
        view = step.batch.weak()
        targets = functional.one_hot(step.batch.labels, step.problem.n_classes).to(right.dtype)
        if bootstraps:
            targets = refurbish(step.batch.labels, right, self._predictions(step, view))
            step.show_targets(targets)
        weight: float | Tensor
        weight, partners = draw_partners(step, [view], MixUp(self.mix_alpha))
        if self.variant == DYNAMIC:
            weight = right / (right + partner_rows(step, [right], partners))
        logits = step.trained(mix_rows(step, [view], partners, weight))
        loss = soft_cross_entropy(logits, mix_rows(step, [targets], partners, weight))
        if not bootstraps:
            return loss
        prior = uniform_prior_divergence(step.mean_rows(logits.softmax(dim=1)))
        return loss + self.prior_weight * prior

    def final_confidence(self, evidence: Evidence, state: State) -> FloatArray:
        """The posterior that a label belongs to the Beta distribution of small losses."""
        return mean_confidence([estimate_confidence(BetaLossMixture(), evidence, 0)], evidence.labels)

    def temperature(self, round: int, rounds: int) -> float:
        """What logits are divided by in soft targets: from 1 to 0.001 over the rounds of bootstrapping."""
        last = max(rounds - 1 - self._bootstrapping_from, 1)
        done = min(max(round - self._bootstrapping_from, 0) / last, 1)
        return 1 - done * (1 - _LAST_TEMPERATURE)

    def _predictions(self, step: Step, view: Tensor) -> Tensor:
        """(b, C) predictions on samples before mixing, by the network in train mode."""
        with torch.no_grad():
            logits = step.trained(view)
        if self.variant == HARD:
            return functional.one_hot(logits.argmax(dim=1), logits.shape[1]).to(logits.dtype)
        return (logits / self.temperature(step.round, step.problem.rounds)).softmax(dim=1)

    @property
    def _bootstrapping_from(self) -> int:
        return self.warmup + (self.dynamic_mixup if self.variant == DYNAMIC else 0)
