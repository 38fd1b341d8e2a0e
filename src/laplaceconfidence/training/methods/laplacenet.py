"""LaplaceNet (Sellars et al., 2021): few labels, propagated over the graph of the features to all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.features.scale import unit_length
from laplaceconfidence.graph.affinity import symmetric_affinity
from laplaceconfidence.graph.neighbors import find_neighbors
from laplaceconfidence.solve.propagation import propagate_labels
from laplaceconfidence.training.augment.mixing import MixUp
from laplaceconfidence.training.losses import soft_cross_entropy
from laplaceconfidence.training.methods.batch_partners import draw_partners, mix_rows
from laplaceconfidence.training.methods.interface import Evidence, Method, Phase, Plan, State
from laplaceconfidence.training.methods.published import MethodFacts, PublishedSettings
from laplaceconfidence.training.methods.warm_up import WARM_UP
from laplaceconfidence.training.step import Step
from laplaceconfidence.validation import check_integer, check_real

LABELED, UNLABELED = "labeled", "unlabeled"
PSEUDO_LABELS = "pseudo_labels"

_TOLERANCE, _MAX_ITERATIONS = 1e-3, 30  # of the conjugate gradients
_ALIGNMENTS, _ALIGNMENT_STEP = 100, 0.01


def _settings(data: str, **method: Any) -> PublishedSettings:
    training: dict[str, Any] = {
        "batch_size": 300 if data == "CIFAR-10" else 100,
        "optimizer": "sgd",
        "learning_rate": 0.03,
        "momentum": 0.9,
        "nesterov": True,
        "weight_decay": 5e-4,
        "schedule": "cosine",
        "strong": ({"n_operations": 1}, {"n_operations": 2}),
    }
    note = "most labels hidden, the others right; WRN-28-2 or WRN-28-8; 250,000 steps"
    return PublishedSettings(data, "none", (), "official code", {"n_views": 3} | method, training, note)


@dataclass(frozen=True, slots=True)
class LaplaceNet(Method):
    """LaplaceNet: samples without a label are trained on the one that the graph of the features gives them.

    Semi-supervised: it is for data of which few samples have a label, and trusts these labels. After some
    rounds on the labeled samples, every round propagates their labels over the graph of the features to all
    others, shifts the result toward the class shares of the given labels, and trains on the most probable
    classes: cross-entropy on mixed strong views of labeled and unlabeled samples. Where all samples have a
    label, what remains is training with MixUp. Of two strong views of a run, the first is for labeled samples
    and the second for the others.

    Parameters
    ----------
    warmup : int, default=100
        Rounds of training on the labeled samples that come first.
    labeled_share : float, default=0.16
        Share of every batch that is labeled samples.
    n_neighbors : int, default=50
        Neighbors of each sample in the graph.
    alpha : float, default=0.99
        How far labels are propagated, in (0, 1).
    mix_alpha : float, default=1
        Parameter of the beta distribution that MixUp draws its weights from.
    n_views : int, default=1
        Views of every sample over which the loss is averaged; the paper's best results have 3.

    References
    ----------
    Sellars, Aviles-Rivero, Schönlieb, "LaplaceNet: A Hybrid Graph-Energy Neural Network for Deep
    Semisupervised Classification", IEEE Transactions on Neural Networks and Learning Systems, 2022.
    """

    warmup: int = 100
    labeled_share: float = 0.16
    n_neighbors: int = 50
    alpha: float = 0.99
    mix_alpha: float = 1.0
    n_views: int = 1
    n_networks: ClassVar[int] = 1
    facts: ClassVar[MethodFacts] = MethodFacts(
        'Sellars et al., "LaplaceNet: A Hybrid Graph-Energy Neural Network for Deep Semisupervised '
        'Classification", TNNLS',
        year=2021,
        cost=1 / 0.84 + 1 / 3,  # if few samples have a label
        needs=("samples without a label",),
    )
    published: ClassVar[tuple[PublishedSettings, ...]] = (
        _settings("CIFAR-10"),
        _settings("CIFAR-100", labeled_share=0.5, mix_alpha=0.5),
    )

    def __post_init__(self) -> None:
        check_integer(self.warmup, "warmup", minimum=0)
        check_real(self.labeled_share, "labeled_share", above=0, below=1)
        check_integer(self.n_neighbors, "n_neighbors", minimum=1)
        check_real(self.alpha, "alpha", above=0, below=1)
        check_real(self.mix_alpha, "mix_alpha", above=0)
        check_integer(self.n_views, "n_views", minimum=1)

    def phases(self, round: int) -> tuple[Phase, ...]:
        if round < self.warmup:
            return (Phase(WARM_UP, trains=(0,), cost=self.n_views),)
        cost = self.n_views / (1 - self.labeled_share)
        return (Phase("propagated", trains=(0,), evidence=(0,), cost=cost),)

    def plan(self, phase: Phase, evidence: Evidence, state: State) -> Plan:
        labels = evidence.labels
        labeled, unlabeled = np.flatnonzero(labels != MISSING), np.flatnonzero(labels == MISSING)
        if phase.name == WARM_UP or not len(unlabeled):
            known = torch.from_numpy(np.maximum(labels, 0))
            return Plan({LABELED: torch.from_numpy(labeled)}, {PSEUDO_LABELS: known})
        solution = self._propagated(evidence)
        pseudo_labels = labels.copy()
        pseudo_labels[unlabeled] = aligned_labels(solution[unlabeled], labels[labeled])
        size = evidence.problem.batch_size
        least = max(1, min(2, size // 2))
        n_labeled = min(max(least, round(self.labeled_share * size)), max(1, size - least))
        return Plan(
            # The unlabeled samples set the length of a round; the others are repeated.
            streams={UNLABELED: torch.from_numpy(unlabeled), LABELED: torch.from_numpy(labeled)},
            tensors={PSEUDO_LABELS: torch.from_numpy(pseudo_labels)},
            batch_sizes={UNLABELED: max(1, size - n_labeled), LABELED: n_labeled},
        )

    def loss(self, step: Step) -> Tensor:
        each = [self._mixed_loss(step) for _ in range(self.n_views)]
        return torch.stack(each).mean()

    def _mixed_loss(self, step: Step) -> Tensor:
        """Cross-entropy on strong views, mixed over all streams."""
        views, targets = [], []
        for name, batch in step.batches.items():
            views.append(batch.strong(0 if name == LABELED else 1))
            codes = step.plan.tensors[PSEUDO_LABELS][batch.index]
            targets.append(functional.one_hot(codes, step.problem.n_classes).to(views[-1].dtype))
        step.show_targets(torch.cat(targets))
        weight, partners = draw_partners(step, views, MixUp(self.mix_alpha))
        logits = step.trained(mix_rows(step, views, partners, weight))
        mixed = mix_rows(step, targets, partners, weight)
        # The mean over the rows of all streams and processes; the loop weights this process by its share of
        # the first stream.
        n_all = sum(len(step.gather_rows(view)) for view in views)
        share = len(logits) * step.team.size / n_all
        return soft_cross_entropy(logits, mixed) * share / step.batch.weight

    def _propagated(self, evidence: Evidence) -> FloatArray:
        """(n, C) the given labels, propagated over the graph of the features; not negative."""
        unit = unit_length(evidence.networks[0].features.astype(np.float32))
        n_jobs = torch.get_num_threads()
        neighbors = find_neighbors(
            unit,
            min(self.n_neighbors, len(unit) - 1),
            n_jobs=n_jobs,
            random_state=evidence.seed % 2**31,
        )
        found = propagate_labels(
            symmetric_affinity(neighbors),
            evidence.labels,
            evidence.problem.n_classes,
            alpha=self.alpha,
            tol=_TOLERANCE,
            max_iter=_MAX_ITERATIONS,
            order=neighbors.order,
            n_jobs=n_jobs,
        )
        solution: FloatArray = np.maximum(found.solution, 0)
        return solution


def aligned_labels(solution: FloatArray, given: IntArray) -> IntArray:
    """The classes of unlabeled samples, after their shares were shifted toward those of the given labels.

    A hundred times, the weight of every class is multiplied by the ratio of its share of the given labels to
    its share of the current classes, but by at most 1% more or less.

    Parameters
    ----------
    solution : ndarray of shape (n, C)
        Weights of the classes, not negative.
    given : ndarray of shape (m,)
        The given labels.

    Returns
    -------
    ndarray of shape (n,)
    """
    n_classes = solution.shape[1]
    wanted = np.bincount(given, minlength=n_classes) / len(given)
    factors = np.ones(n_classes)
    for _ in range(_ALIGNMENTS):
        found = np.bincount((solution * factors).argmax(axis=1), minlength=n_classes) / len(solution)
        ratio = wanted / np.maximum(found, 1e-7)
        factors *= np.clip(ratio, 1 - _ALIGNMENT_STEP, 1 + _ALIGNMENT_STEP)
    aligned: IntArray = (solution * factors).argmax(axis=1).astype(np.int64)
    return aligned
