"""MOIT+ (Ortego et al., 2021): MOIT, then a new classifier for what it found clean."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from laplaceconfidence.exceptions import TrainingWarning
from laplaceconfidence.training.losses import soft_cross_entropy
from laplaceconfidence.training.methods.batch_partners import mix_rows
from laplaceconfidence.training.methods.interface import Evidence, Phase, Plan, Problem, State
from laplaceconfidence.training.methods.moit import CELLS, CLEAN, TRAINING, MixedView, Moit, plain_prediction
from laplaceconfidence.training.methods.published import PublishedSettings
from laplaceconfidence.training.step import Step
from laplaceconfidence.training.trained_network import CLASSIFIER
from laplaceconfidence.validation import check_integer, check_real

_FINE_TUNING = "fine-tuning"
_PREDICTED_PART = 0.2  # of the targets of hard bootstrapping


@dataclass(frozen=True, slots=True)
class MoitPlus(Moit):
    """MOIT+: MOIT, then a new classifier that is trained on the samples with clean labels.

    After the rounds of MOIT, the classifier starts anew, and the network is fine-tuned with MixUp on the
    samples that MOIT then finds clean. After some of these rounds, a fifth of every target is the class that
    the network predicts for the sample without augmentation.

    Parameters
    ----------
    warmup, n_neighbors, temperature, memory_per_class, memory_from, mix_alpha : as for ``Moit``
    moit_rounds : int, default=250
        Rounds of MOIT; all rounds after them are fine-tuning, 70 in the paper.
    fine_tuning_rate : float or None, default=0.001
        Learning rate of the fine-tuning; ``None`` keeps the schedule of the run.
    bootstrap_from : int, default=30
        Rounds of the fine-tuning without predictions in the targets.

    References
    ----------
    Ortego et al., "Multi-Objective Interpolation Training for Robustness to Label Noise", CVPR 2021.
    """

    moit_rounds: int = 250
    fine_tuning_rate: float | None = 0.001
    bootstrap_from: int = 30
    published: ClassVar[tuple[PublishedSettings, ...]] = tuple(
        PublishedSettings(
            data,
            noise,
            (rate,),
            "official code",
            {},
            TRAINING | {"rounds": 390 if rate == 0.8 else 320},
            "the learning rate falls once more after 120 rounds of fine-tuning" if rate == 0.8 else "",
        )
        for data, noise, rates in CELLS
        for rate in rates
    )

    def __post_init__(self) -> None:
        Moit.__post_init__(self)
        check_integer(self.moit_rounds, "moit_rounds", minimum=1)
        if self.fine_tuning_rate is not None:
            check_real(self.fine_tuning_rate, "fine_tuning_rate", above=0)
        check_integer(self.bootstrap_from, "bootstrap_from", minimum=0)

    def phases(self, round: int) -> tuple[Phase, ...]:
        if round < self.moit_rounds:
            return Moit.phases(self, round)
        phase = Phase(_FINE_TUNING, trains=(0,), learning_rate=self.fine_tuning_rate, cost=4 / 3)
        if round == self.moit_rounds:
            return (replace(phase, evidence=(0,), fresh=(0,), fresh_parts=(CLASSIFIER,)),)
        return (phase,)

    def initial_state(self, problem: Problem) -> State:
        if problem.rounds <= self.moit_rounds:
            warnings.warn(
                f"All {problem.rounds} rounds are rounds of MOIT ('moit_rounds' is {self.moit_rounds}): "
                "nothing is fine-tuned. Use more 'rounds' or fewer 'moit_rounds'.",
                TrainingWarning,
                stacklevel=2,
            )
        return Moit.initial_state(self, problem)

    def plan(self, phase: Phase, evidence: Evidence, state: State) -> Plan:
        plan = Moit.plan(self, phase, evidence, state)
        if phase.name != _FINE_TUNING:
            return plan
        clean = state[CLEAN].cpu()
        return replace(
            plan,
            streams={"samples": torch.nonzero(clean).flatten()},
            tensors={"confidence": clean.float()},
            measures={"clean_share": float(clean.float().mean())},
        )

    def loss(self, step: Step) -> Tensor:
        if step.phase.name != _FINE_TUNING:
            return Moit.loss(self, step)
        targets = functional.one_hot(step.batch.labels, step.problem.n_classes).float()
        if step.round >= self.moit_rounds + self.bootstrap_from:
            predicted = functional.one_hot(plain_prediction(step).argmax(dim=1), step.problem.n_classes)
            targets = (1 - _PREDICTED_PART) * targets + _PREDICTED_PART * predicted
        view = MixedView(self, step)
        return soft_cross_entropy(view.logits, mix_rows(step, [targets], view.partners, view.weight))
