"""MLNT, also called Meta-Learning (Li et al., 2019): weights that a step on wrong labels hardly changes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.training.methods.interface import (
    Evidence,
    Method,
    Phase,
    Plan,
    Stage,
    State,
    WeightCopy,
)
from laplaceconfidence.training.methods.published import MethodFacts, PublishedSettings
from laplaceconfidence.training.methods.repeated_training import (
    RepeatedTraining,
    check_rounds_of_each,
    rounds_of_each,
)
from laplaceconfidence.training.step import Step
from laplaceconfidence.validation import check_boolean, check_integer, check_real

STUDENT, TEACHER, MENTOR = 0, 1, 2
KEPT = "kept"
_FIRST, _META = "training of the mentor", "meta-learning"

_TRAINING = {
    "rounds": 240,
    "batch_size": 128,
    "optimizer": "sgd",
    "learning_rate": 0.2,
    "momentum": 0.9,
    "weight_decay": 1e-4,
    "learning_rate_drops": (80,),
}
_NOTE = "ResNet-32; the official code is for Clothing1M only"


@dataclass(frozen=True, slots=True)
class MLNT(Method):
    """MLNT: before each step, the weights are made such that a step on synthetic noise changes little.

    Synthetic labels give some samples of a batch the label of a near neighbor, by the features of a mentor, a
    network that was trained before. For each of several sets of them, the student makes a virtual step of
    gradient descent, after which it should predict what its teacher does, the moving average of its weights:
    the mean KL divergence is the meta-loss. A step on it comes first, one on cross-entropy second; the
    published code adds both into one. In further iterations the mentor is the best teacher of the one before
    it: it shares in the targets, and samples whose label it finds improbable are left out.

    Parameters
    ----------
    synthetic_sets : int, default=10
        Sets of synthetic labels per batch, M.
    replaced_share : float, default=0.5
        Share of a batch that gets other labels in each set.
    n_neighbors : int, default=10
        Nearest samples of the batch that these labels are taken from.
    inner_rate : float, default=0.2
        Learning rate of the virtual steps.
    second_order : bool, default=True
        Whether the gradient of the meta-loss includes how the virtual steps depend on the weights, as in the
        published code. The paper leaves it out.
    meta_weight : float, default=0.4
        Weight of the meta-loss, after ``ramp`` rounds of an iteration.
    ramp : int, default=20
        Rounds over which the weight rises.
    early_decay, teacher_decay : float, default=0.99, 0.999
        What remains of the teacher's weights after a step, within these rounds and after them.
    iterations : int, default=1
        How often student and teacher are trained. The paper has further iterations, the published code one.
    mentor_share : float, default=0.5
        Share of the mentor in the targets from the second iteration on.
    least_probability : float, default=0.01
        Smallest probability of the given label, by the mentor, of samples that further iterations use.
    training_rounds : int or None, default=None
        Rounds of the training of the mentor and of each iteration but the last one; ``None`` divides all
        rounds evenly. The schedule of the learning rate is that of each of them.

    References
    ----------
    Li, Wong, Zhao and Kankanhalli, "Learning to Learn from Noisy Labeled Data", CVPR 2019.
    """

    synthetic_sets: int = 10
    replaced_share: float = 0.5
    n_neighbors: int = 10
    inner_rate: float = 0.2
    second_order: bool = True
    meta_weight: float = 0.4
    ramp: int = 20
    early_decay: float = 0.99
    teacher_decay: float = 0.999
    iterations: int = 1
    mentor_share: float = 0.5
    least_probability: float = 0.01
    training_rounds: int | None = None
    n_networks: ClassVar[int] = 3
    facts: ClassVar[MethodFacts] = MethodFacts(
        'Li et al., "Learning to Learn from Noisy Labeled Data", CVPR',
        year=2019,
        cost=38 / 3,
        title="MLNT",
    )
    published: ClassVar[tuple[PublishedSettings, ...]] = (
        PublishedSettings(
            "CIFAR-10", "symmetric", (0.1, 0.3, 0.5, 0.7, 0.9), "unverified", {}, _TRAINING, _NOTE
        ),
        PublishedSettings(
            "CIFAR-10", "asymmetric", (0.1, 0.2, 0.3, 0.4, 0.5), "unverified", {}, _TRAINING, _NOTE
        ),
        PublishedSettings(
            "Clothing1M",
            "real",
            (),
            "official code",
            {"inner_rate": 0.02},
            {"optimizer": "sgd", "learning_rate": 8e-4},
            "ResNet-50, trained on ImageNet before",
        ),
    )

    def __post_init__(self) -> None:
        check_integer(self.synthetic_sets, "synthetic_sets", minimum=1)
        check_real(self.replaced_share, "replaced_share", at_least=0, at_most=1)
        check_integer(self.n_neighbors, "n_neighbors", minimum=1)
        check_real(self.inner_rate, "inner_rate", at_least=0)
        check_boolean(self.second_order, "second_order")
        check_real(self.meta_weight, "meta_weight", at_least=0)
        check_integer(self.ramp, "ramp", minimum=1)
        check_real(self.early_decay, "early_decay", at_least=0, below=1)
        check_real(self.teacher_decay, "teacher_decay", at_least=0, below=1)
        check_integer(self.iterations, "iterations", minimum=1)
        check_real(self.mentor_share, "mentor_share", at_least=0, at_most=1)
        check_real(self.least_probability, "least_probability", at_least=0, below=1)
        check_rounds_of_each(self.training_rounds, "training_rounds")

    @property
    def predictors(self) -> tuple[int, ...]:
        return (TEACHER,)

    def for_rounds(self, rounds: int) -> Self:
        each = rounds_of_each(self.iterations + 1, self.training_rounds, "training_rounds", rounds)
        return replace(self, training_rounds=each)

    def stage(self, round: int) -> Stage:
        of_mentor = self._trainings.current(round) == 0
        return replace(self._trainings.stage(round), predictors=(MENTOR,) if of_mentor else (TEACHER,))

    def phases(self, round: int) -> tuple[Phase, ...]:
        iteration = self._trainings.current(round)
        if iteration == 0:
            return (Phase(_FIRST, trains=(MENTOR,)),)
        cost = (6 + 3 * self.synthetic_sets + 2) / 3
        phase = Phase(_META, trains=(STUDENT,), cost=cost)
        if not self._trainings.begins_again(round):
            return (phase,)
        mentor = WeightCopy(MENTOR, MENTOR if iteration == 1 else TEACHER, best=True)
        copies = (mentor, WeightCopy(TEACHER, STUDENT))
        # The first iteration uses all samples; later ones those that the mentor to be finds probable.
        evidence = () if iteration == 1 else (TEACHER,)
        return (replace(phase, evidence=evidence, best_evidence=True, fresh=(STUDENT,), copies=copies),)

    def plan(self, phase: Phase, evidence: Evidence, state: State) -> Plan:
        if phase.evidence:
            probabilities = evidence.networks[TEACHER].probabilities
            at_label = probabilities[np.arange(len(probabilities)), np.maximum(evidence.labels, 0)]
            labeled = evidence.labels != MISSING
            kept = labeled & (at_label >= self.least_probability)
            state[KEPT] = torch.from_numpy(np.flatnonzero(kept if kept.any() else labeled))
        if KEPT in state:
            return Plan.over(state[KEPT])
        return Method.plan(self, phase, evidence, state)

    def losses(self, step: Step) -> Iterator[Tensor]:
        if step.phase.name == _META:
            yield self.meta_weight_at(step) * self.meta_loss(step)
        yield self.loss(step)

    def loss(self, step: Step) -> Tensor:
        return functional.cross_entropy(step.trained(step.batch.weak()), step.batch.labels)

    def meta_loss(self, step: Step) -> Tensor:
        """The mean divergence from the targets after virtual steps on synthetic labels, with its gradient.

        The gradient is computed set by set, so that there is only one virtual network at a time; what is
        returned has the value of the meta-loss, and is linear in the weights with this gradient.
        """
        view, weight = step.batch.weak(), step.batch.weight
        parameters = {name: one for name, one in step.trained.module.named_parameters() if one.requires_grad}
        logits = step.trained.outputs(view, compiled=False).logits
        targets, neighbors = self._targets_and_neighbors(step, view)
        total = torch.zeros((), device=view.device)
        slopes = [torch.zeros_like(one) for one in parameters.values()]
        for _ in range(self.synthetic_sets):
            labels = step.own_rows(
                synthetic_labels(
                    step.gather_rows(step.batch.labels), neighbors, self.replaced_share, step.generator
                )
            )
            # Shares of the batch in several processes may differ in size; the loop applies the same weight.
            inner = weight * functional.cross_entropy(logits, labels)
            moved = self._after_virtual_step(step, inner, parameters)
            divergence = _divergence(targets, step.trained.outputs_with(moved, view).logits)
            part = weight * divergence / self.synthetic_sets
            found = torch.autograd.grad(part, list(parameters.values()), retain_graph=True, allow_unused=True)
            slopes = [slope if one is None else slope + one for slope, one in zip(slopes, found, strict=True)]
            total += part.detach()
        linear = [(one * slope).sum() for one, slope in zip(parameters.values(), slopes, strict=True)]
        change = torch.stack(linear).sum()
        return (total + change - change.detach()) / weight

    def after_step(self, step: Step) -> None:
        if step.phase.name != _META or not step.is_made:
            return
        done = step.progress - self._trainings.first_round(step.round)
        decay = self.early_decay if done < self.ramp else self.teacher_decay
        student, teacher = (step.networks[number].module.state_dict() for number in (STUDENT, TEACHER))
        with torch.no_grad():
            for name, mean in teacher.items():
                if mean.is_floating_point():
                    mean.lerp_(student[name], 1 - decay)
                else:
                    mean.copy_(student[name])

    def meta_weight_at(self, step: Step) -> float:
        """The weight of the meta-loss in a step: ``meta_weight`` * exp(-5 (1 - t / ramp)^2), t in rounds."""
        done = step.progress - self._trainings.first_round(step.round)
        return self.meta_weight * math.exp(-5 * (1 - min(done / self.ramp, 1)) ** 2)

    def _after_virtual_step(
        self, step: Step, loss: Tensor, parameters: Mapping[str, Tensor]
    ) -> dict[str, Tensor]:
        """The parameters after a step of gradient descent on the loss of the whole batch."""
        slopes = torch.autograd.grad(
            loss,
            list(parameters.values()),
            retain_graph=True,
            create_graph=self.second_order,
            allow_unused=True,
        )
        return {
            name: parameter if slope is None else parameter - self.inner_rate * step.team.mean(slope)
            for (name, parameter), slope in zip(parameters.items(), slopes, strict=True)
        }

    @torch.no_grad()
    def _targets_and_neighbors(self, step: Step, view: Tensor) -> tuple[Tensor, Tensor]:
        """(b, C) what the student should predict, and the (B, k) nearest samples in the whole batch."""
        targets = step.networks[TEACHER](view).softmax(dim=1)
        mentor = step.networks[MENTOR].outputs(view)
        if self._trainings.current(step.round) > 1:
            targets = torch.lerp(targets, mentor.logits.softmax(dim=1), self.mentor_share)
        features = step.gather_rows(mentor.features)
        distances = torch.cdist(features, features).fill_diagonal_(torch.inf)
        k = min(self.n_neighbors, len(features) - 1)
        return targets, distances.topk(k, largest=False).indices

    @property
    def _trainings(self) -> RepeatedTraining:
        return RepeatedTraining.of(self.iterations + 1, self.training_rounds)


def synthetic_labels(labels: Tensor, neighbors: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """Labels of which a random share is replaced by that of a random neighbor.

    Parameters
    ----------
    labels : Tensor of shape (n,)
        Given labels.
    neighbors : Tensor of shape (n, k)
        The neighbors of each sample; nothing is replaced if there are none.
    share : float
        How many labels are replaced, rounded down. Neighbors may have the same label.
    generator : torch.Generator
        On the CPU.

    Returns
    -------
    Tensor of shape (n,)
    """
    n, k = neighbors.shape
    chosen = torch.randperm(n, generator=generator)[: int(share * n) if k else 0].to(labels.device)
    picked = torch.randint(0, max(k, 1), (len(chosen),), generator=generator).to(labels.device)
    synthetic = labels.clone()
    if len(chosen):
        synthetic[chosen] = labels[neighbors[chosen, picked]]
    return synthetic


def _divergence(targets: Tensor, logits: Tensor) -> Tensor:
    """The mean KL divergence of predictions from target distributions."""
    return functional.kl_div(logits.log_softmax(dim=1), targets, reduction="batchmean")
