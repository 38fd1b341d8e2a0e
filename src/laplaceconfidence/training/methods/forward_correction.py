"""Forward correction, also called F-correction (Patrini et al., 2017): a loss that expects wrong labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.training.methods.interface import (
    Evidence,
    Method,
    Phase,
    Plan,
    Problem,
    Stage,
    State,
)
from laplaceconfidence.training.methods.published import MethodFacts, PublishedSettings
from laplaceconfidence.training.methods.repeated_training import (
    RepeatedTraining,
    check_rounds_of_each,
    rounds_of_each,
)
from laplaceconfidence.training.step import Step
from laplaceconfidence.validation import check_real

TRANSITION = "transition"
_ESTIMATION, _CORRECTED = "estimation", "forward correction"


def _settings(
    data: str, rounds: int, drops: tuple[int, ...], decay: float, **method: Any
) -> PublishedSettings:
    training = {
        "rounds": 2 * rounds,
        "batch_size": 128,
        "optimizer": "sgd",
        "learning_rate": 0.1,
        "momentum": 0.9,
        "weight_decay": decay,
        "learning_rate_drops": drops,
    }
    note = "a ResNet, shifts by up to a tenth and flips; the penalty of Keras is half of the weight decay"
    own = {"estimation_rounds": rounds, **method}
    return PublishedSettings(data, "asymmetric", (), "official code", own, training, note)


@dataclass(frozen=True, slots=True)
class ForwardCorrection(Method):
    """F-correction: estimates the noise matrix with a first network, and trains a second one through it.

    The first training is plain cross-entropy. Its best network by held-out labels predicts p; row i of the
    matrix T is p of the sample that is most certainly of class i, ties and outliers at the top left out. A
    new network is then trained with -log (p T)[given label], and predicts p. The published code removes the
    outliers of a class for all later classes, too; that is not followed.

    Parameters
    ----------
    estimation_rounds : int or None, default=None
        Rounds of the first training; ``None`` is half of all rounds, as published. The schedule of the
        learning rate is that of either training: drops are counted from its beginning.
    percentile : float, default=97
        The anchor of a class is the sample with its largest probability below this percentile; 100 takes the
        largest one of all, as was published for CIFAR-100.

    References
    ----------
    Patrini, Rozza, Menon, Nock and Qu, "Making Deep Neural Networks Robust to Label Noise: A Loss Correction
    Approach", CVPR 2017.
    """

    estimation_rounds: int | None = None
    percentile: float = 97.0
    n_networks: ClassVar[int] = 1
    facts: ClassVar[MethodFacts] = MethodFacts(
        'Patrini et al., "Making Deep Neural Networks Robust to Label Noise: A Loss Correction Approach", '
        "CVPR",
        year=2017,
        cost=1.0,
        title="F-correction",
    )
    published: ClassVar[tuple[PublishedSettings, ...]] = (
        _settings("CIFAR-10", 120, (40, 80), 2e-4),
        _settings("CIFAR-100", 150, (80, 120), 2e-3, percentile=100.0),
    )

    def __post_init__(self) -> None:
        check_rounds_of_each(self.estimation_rounds, "estimation_rounds")
        check_real(self.percentile, "percentile", above=0, at_most=100)

    def for_rounds(self, rounds: int) -> Self:
        first = rounds_of_each(2, self.estimation_rounds, "estimation_rounds", rounds)
        return replace(self, estimation_rounds=first)

    def stage(self, round: int) -> Stage:
        return self._trainings.stage(round)

    def phases(self, round: int) -> tuple[Phase, ...]:
        if self._trainings.current(round) == 0:
            return (Phase(_ESTIMATION, trains=(0,)),)
        if not self._trainings.begins_again(round):
            return (Phase(_CORRECTED, trains=(0,)),)
        return (Phase(_CORRECTED, trains=(0,), evidence=(0,), best_evidence=True, fresh=(0,)),)

    def initial_state(self, problem: Problem) -> State:
        return {TRANSITION: torch.eye(problem.n_classes)}

    def plan(self, phase: Phase, evidence: Evidence, state: State) -> Plan:
        plan = Method.plan(self, phase, evidence, state)
        if phase.evidence:
            estimated = anchored_transition(evidence.networks[0].probabilities, self.percentile)
            state[TRANSITION] = torch.from_numpy(estimated.astype(np.float32))
        if phase.name == _ESTIMATION:
            return plan
        kept = float(state[TRANSITION].diagonal().mean())
        return replace(plan, measures={"mean_kept_share": kept})

    def loss(self, step: Step) -> Tensor:
        logits, labels = step.trained(step.batch.weak()), step.batch.labels
        if step.phase.name == _ESTIMATION:
            return functional.cross_entropy(logits, labels)
        return forward_loss(logits, labels, step.state[TRANSITION])

    @property
    def _trainings(self) -> RepeatedTraining:
        return RepeatedTraining.of(2, self.estimation_rounds)


def anchored_transition(probabilities: FloatArray, percentile: float) -> FloatArray:
    """The noise matrix from predictions: row i is that of the sample which is most certainly of class i.

    Parameters
    ----------
    probabilities : ndarray of shape (n_samples, n_classes)
        Predictions of a network that was trained on the given labels.
    percentile : float
        Of every column, only values below this percentile are considered; all of them if it is 100, or if
        none is below.

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
        In row i and column j, how often the class i is labeled as j.
    """
    rows = []
    for column in probabilities.T:
        below = column < np.percentile(column, percentile)
        considered = np.where(below, column, -1.0) if percentile < 100 and below.any() else column
        rows.append(probabilities[considered.argmax()])
    anchors = np.stack(rows).astype(np.float64)
    transition: FloatArray = anchors / anchors.sum(axis=1, keepdims=True)
    return transition


def forward_loss(logits: Tensor, labels: Tensor, transition: Tensor) -> Tensor:
    """The mean of -log (p T)[label]: cross-entropy of the labels as the noise would show them."""
    at_label = (logits.softmax(dim=1) * transition[:, labels].T).sum(dim=1)
    return -at_label.clamp_min(torch.finfo(torch.float32).tiny).log().mean()
