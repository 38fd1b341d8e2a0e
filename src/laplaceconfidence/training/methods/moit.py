"""MOIT (Ortego et al., 2021): labels judged by neighbors in a space learned by contrast."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.confidence.knn_vote import vote_counts
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.features.scale import unit_length
from laplaceconfidence.graph.neighbors import find_neighbors
from laplaceconfidence.training.augment.mixing import MixUp
from laplaceconfidence.training.losses import contrastive_losses, soft_cross_entropy
from laplaceconfidence.training.methods.batch_partners import draw_partners, mix_rows, partner_rows
from laplaceconfidence.training.methods.interface import Evidence, Method, Phase, Plan, Problem, State
from laplaceconfidence.training.methods.published import MethodFacts, PublishedSettings
from laplaceconfidence.training.step import Step
from laplaceconfidence.validation import check_integer, check_real

PROJECTION = "projection"
CLEAN = "clean"
MEMORY, MEMORY_LABELS = "memory", "memory_labels"  # newest first; the label is -1 where nothing is stored

_ALL_LABELS, _SEMI_SUPERVISED = "all labels", "semi-supervised"
_N_PROJECTED = 128
_BORDER = 0.01  # of probabilities, before their logarithm ranks samples

TRAINING: dict[str, Any] = {
    "network": "preact_resnet18",
    "rounds": 250,
    "batch_size": 128,
    "optimizer": "sgd",
    "learning_rate": 0.1,
    "momentum": 0.9,
    "weight_decay": 1e-4,
    "learning_rate_drops": (125, 200),
}
"""The published parameters of ``RobustClassifier``."""

CELLS = (
    ("CIFAR-10", "symmetric", (0.2, 0.4, 0.8)),
    ("CIFAR-10", "asymmetric", (0.1, 0.3, 0.4)),
    ("CIFAR-100", "symmetric", (0.2, 0.4, 0.8)),
    ("CIFAR-100", "asymmetric", (0.1, 0.3, 0.4)),
)
"""Data sets, noises and rates of the paper."""


@dataclass(frozen=True, slots=True)
class Moit(Method):
    """MOIT: mixed samples are contrasted by their labels, and neighbors in that space judge the labels.

    Two mixed views of every sample are trained with cross-entropy and, in a projection of the features, with
    a contrastive loss that pulls samples of one label together, by each of the two labels that were mixed;
    older projections are kept in a memory. After some rounds, the label of every sample is compared with a
    vote of its neighbors, whose own labels are corrected by a vote first. In each class the same number of
    labels agrees best and stays; for the other samples the target is the prediction on the sample without
    augmentation. That prediction is made in eval mode, and targets are those of each sample of a mixed pair,
    as in the paper; the published code uses train mode and the first sample's decision for both.

    Parameters
    ----------
    warmup : int, default=130
        Rounds in which all given labels are trained on.
    n_neighbors : int, default=250
        Neighbors that vote, by the cosine of the projections.
    temperature : float, default=0.1
        What cosines are divided by in the contrastive loss.
    memory_per_class : int, default=200
        Projections in the memory, per class.
    memory_from : int, default=3
        Rounds without the memory.
    mix_alpha : float, default=1
        Parameter of the beta distribution that MixUp draws its weights from; the larger part of a mixed
        sample is its own.

    References
    ----------
    Ortego et al., "Multi-Objective Interpolation Training for Robustness to Label Noise", CVPR 2021.
    """

    warmup: int = 130
    n_neighbors: int = 250
    temperature: float = 0.1
    memory_per_class: int = 200
    memory_from: int = 3
    mix_alpha: float = 1.0
    n_networks: ClassVar[int] = 1
    facts: ClassVar[MethodFacts] = MethodFacts(
        'Ortego et al., "Multi-Objective Interpolation Training for Robustness to Label Noise", CVPR',
        year=2021,
        cost=8 / 3,
    )
    published: ClassVar[tuple[PublishedSettings, ...]] = tuple(
        PublishedSettings(*cell, "official code", {}, TRAINING) for cell in CELLS
    )

    def __post_init__(self) -> None:
        check_integer(self.warmup, "warmup", minimum=0)
        check_integer(self.n_neighbors, "n_neighbors", minimum=1)
        check_real(self.temperature, "temperature", above=0)
        check_integer(self.memory_per_class, "memory_per_class", minimum=0)
        check_integer(self.memory_from, "memory_from", minimum=0)
        check_real(self.mix_alpha, "mix_alpha", above=0)

    def phases(self, round: int) -> tuple[Phase, ...]:
        if round < self.warmup:
            return (Phase(_ALL_LABELS, trains=(0,), cost=2),)
        return (Phase(_SEMI_SUPERVISED, trains=(0,), evidence=(0,), cost=2 + 1 / 3),)

    def heads(self, n_features: int, n_classes: int) -> dict[str, nn.Module]:
        return {PROJECTION: nn.Linear(n_features, _N_PROJECTED)}

    def initial_state(self, problem: Problem) -> State:
        size = self.memory_per_class * problem.n_classes
        return {
            MEMORY: torch.zeros(size, _N_PROJECTED),
            MEMORY_LABELS: torch.full((size,), MISSING),
            CLEAN: torch.zeros(problem.n_samples, dtype=torch.bool),
        }

    def plan(self, phase: Phase, evidence: Evidence, state: State) -> Plan:
        plan = Method.plan(self, phase, evidence, state)
        if not phase.evidence:
            return plan
        shares = self.agreement(evidence)
        state[CLEAN] = torch.from_numpy(most_agreeing(shares, evidence.labels))
        clean = state[CLEAN].float()
        return replace(
            plan, tensors={"confidence": clean.clone()}, measures={"clean_share": float(clean.mean())}
        )

    def loss(self, step: Step) -> Tensor:
        views = [MixedView(self, step) for _ in range(2)]
        targets = self._targets(step)
        contrast = self._contrast(step, views)
        step.measure("contrast", contrast * step.batch.weight)
        classified = [
            soft_cross_entropy(view.logits, mix_rows(step, [targets], view.partners, view.weight))
            for view in views
        ]
        return contrast + torch.stack(classified).mean()

    def after_step(self, step: Step) -> None:
        for name in (MEMORY, MEMORY_LABELS):
            if name in step.notes:
                step.state[name] = step.notes[name]

    def final_confidence(self, evidence: Evidence, state: State) -> FloatArray:
        """The share of the given label in the second vote of the neighbors."""
        shares = self.agreement(evidence)
        confidence: FloatArray = np.full(len(evidence.labels), np.nan)
        labeled = np.flatnonzero(evidence.labels != MISSING)
        confidence[labeled] = shares[labeled, evidence.labels[labeled]]
        return confidence

    def agreement(self, evidence: Evidence) -> FloatArray:
        """Shares of the classes among the neighbors of every sample, by their corrected labels.

        Parameters
        ----------
        evidence : Evidence
            Projections of the network, and given labels.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows sum to 1; rows of samples without a label are 0.
        """
        labeled = np.flatnonzero(evidence.labels != MISSING)
        n_classes = evidence.problem.n_classes
        shares = np.zeros((len(evidence.labels), n_classes))
        if len(labeled) < 2:
            shares[labeled, evidence.labels[labeled]] = 1
            return shares
        neighbors = find_neighbors(
            unit_length(evidence.networks[0].heads[PROJECTION][labeled].astype(np.float32)),
            min(self.n_neighbors, len(labeled) - 1),
            n_jobs=torch.get_num_threads(),
            random_state=evidence.seed % 2**31,
        ).indices
        votes = (neighbors >= 0).astype(np.float64)
        corrected = vote_counts(neighbors, votes, evidence.labels[labeled], n_classes).argmax(axis=1)
        counts = vote_counts(neighbors, votes, corrected, n_classes)
        shares[labeled] = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        return shares

    def _targets(self, step: Step) -> Tensor:
        """(b, C) given labels of clean samples, predictions for the others."""
        given = functional.one_hot(step.batch.labels, step.problem.n_classes).float()
        if step.phase.name == _ALL_LABELS:
            return given
        clean = step.state[CLEAN][step.batch.index].unsqueeze(1)
        targets = torch.where(clean, given, plain_prediction(step))
        step.show_targets(targets)
        return targets

    def _contrast(self, step: Step, views: list[MixedView]) -> Tensor:
        """The contrastive loss within the batch, plus that with the memory."""
        own = torch.cat([view.projected for view in views])
        everyone = torch.cat([step.gather_rows_with_gradient(view.projected) for view in views])
        labels = step.gather_rows(step.batch.labels).repeat(2)
        n_batch = len(labels) // 2
        positions = step.own_rows(torch.arange(n_batch, device=own.device))
        itself = torch.cat([positions, n_batch + positions]).unsqueeze(1)
        loss = self._mixed_contrast(step, views, own, everyone, labels, itself)
        size = len(step.state[MEMORY_LABELS])
        memory = torch.cat([everyone.detach(), step.state[MEMORY]])[:size]
        memory_labels = torch.cat([labels, step.state[MEMORY_LABELS]])[:size]
        step.notes |= {MEMORY: memory, MEMORY_LABELS: memory_labels}
        if step.round < self.memory_from or not size:
            return loss
        return loss + self._mixed_contrast(step, views, own, memory, memory_labels, itself)

    def _mixed_contrast(
        self,
        step: Step,
        views: list[MixedView],
        own: Tensor,
        columns: Tensor,
        labels: Tensor,
        itself: Tensor,
    ) -> Tensor:
        """Contrast of own rows with columns, by either label of a mixed sample; no row with itself."""
        # A memory, too, begins with the rows of the batch.
        allowed = (labels != MISSING) & (torch.arange(len(labels), device=labels.device) != itself)
        similarities = own @ columns.T / self.temperature
        first = step.batch.labels.repeat(2).unsqueeze(1)
        second = torch.cat([view.partner_labels for view in views]).unsqueeze(1)
        weights = torch.cat([torch.full_like(view.projected[:, 0], view.weight) for view in views])
        by_first = contrastive_losses(similarities, labels == first, allowed)
        by_second = contrastive_losses(similarities, labels == second, allowed)
        return (weights * by_first + (1 - weights) * by_second).mean()


class MixedView:
    """A weak view of a batch, mixed with others of the whole batch, and what the network gives for it."""

    def __init__(self, method: Moit, step: Step) -> None:
        view = step.batch.weak()
        mixing = MixUp(method.mix_alpha, own_part_larger=True)
        self.weight, self.partners = draw_partners(step, [view], mixing)
        outputs = step.trained.outputs(mix_rows(step, [view], self.partners, self.weight))
        self.logits = outputs.logits
        self.projected = functional.normalize(outputs.heads[PROJECTION].float(), dim=1)
        self.partner_labels = partner_rows(step, [step.batch.labels], self.partners)


def most_agreeing(shares: FloatArray, labels: IntArray) -> BoolArray:
    """The samples of each class whose neighbors agree most with their label, as many in every class.

    Parameters
    ----------
    shares : ndarray of shape (n_samples, n_classes)
        Shares of the classes among the neighbors.
    labels : ndarray of shape (n_samples,)
        Given labels, -1 where missing.

    Returns
    -------
    ndarray of shape (n_samples,)
        For each class the same number, the median of how many agree with their neighbors, but at least one
        and at most all of the class.
    """
    n_classes = shares.shape[1]
    labeled = np.flatnonzero(labels != MISSING)
    given = labels[labeled]
    agrees = shares[labeled].argmax(axis=1) == given
    n_agreeing = np.sort(np.bincount(given[agrees], minlength=n_classes))
    n_clean = max(1, int(n_agreeing[(n_classes - 1) // 2]))
    discrepancy = -np.log(np.clip(shares[labeled, given], _BORDER, 1 - _BORDER))
    clean = np.zeros(len(labels), dtype=bool)
    for code in range(n_classes):
        of_class = np.flatnonzero(given == code)
        best = np.argsort(discrepancy[of_class], kind="stable")[:n_clean]
        clean[labeled[of_class[best]]] = True
    return clean


def plain_prediction(step: Step) -> Tensor:
    """(b, C) class probabilities of the samples without augmentation."""
    with torch.no_grad(), step.trained.evaluating():
        return step.trained(step.batch.plain()).softmax(dim=1)
