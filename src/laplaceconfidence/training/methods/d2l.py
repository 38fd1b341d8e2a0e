"""D2L (Ma et al., 2018): labels are trusted less when the features need more dimensions."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from laplaceconfidence.arrays import FloatArray
from laplaceconfidence.training.losses import soft_cross_entropy
from laplaceconfidence.training.methods.interface import Evidence, Method, Phase, Plan, Problem, State
from laplaceconfidence.training.methods.published import MethodFacts, PublishedSettings
from laplaceconfidence.training.step import Step
from laplaceconfidence.validation import check_integer, check_real

DIMENSIONS = "dimensions"  # in the state: the estimate before each round so far
TURNING_ROUND = "turning_round"  # in the state; -1 before it is found
LABEL_WEIGHT = "label_weight"

_SMALLEST_RATIO = 1e-7  # of two distances, so that a duplicate has a finite logarithm

_TRAINING = {
    "batch_size": 128,
    "optimizer": "sgd",
    "learning_rate": 0.1,
    "momentum": 0.9,
}
_PHASE_ONE = "the code since 2019 begins with symmetric cross-entropy, the paper with plain cross-entropy"


@dataclass(frozen=True, slots=True)
class D2L(Method):
    """D2L: once the features begin to need more dimensions, predictions replace part of the labels.

    Before every round, the local intrinsic dimensionality of the penultimate features is estimated. While a
    network learns what labels have in common, it falls; when it begins to memorize single labels, it rises.
    At the first clear rise, the training turns from cross-entropy to the targets w * given + (1 - w) *
    predicted class, where w = exp(-(round / rounds) * dimensionality / smallest one so far). If there is no
    such rise, the method is cross-entropy. The network goes on from where it is, as the published code in
    effect does; the paper goes back one round.

    Parameters
    ----------
    warmup : int, default=40
        Rounds before the first that may be the turning point, besides ``window``.
    window : int, default=5
        Rounds with whose dimensionality that of a round is compared.
    n_deviations : float, default=2
        How many standard deviations of the window above its mean the turning point is.
    n_neighbors : int, default=20
        Neighbors of each sample that its dimensionality is estimated from.
    n_observed : int, default=1280
        Samples, drawn at random in every round, whose mean dimensionality is taken.
    group_size : int, default=128
        Neighbors are searched within groups of this size.

    References
    ----------
    Ma et al., "Dimensionality-Driven Learning with Noisy Labels", ICML 2018.
    """

    warmup: int = 40
    window: int = 5
    n_deviations: float = 2.0
    n_neighbors: int = 20
    n_observed: int = 1280
    group_size: int = 128
    n_networks: ClassVar[int] = 1
    facts: ClassVar[MethodFacts] = MethodFacts(
        'Ma et al., "Dimensionality-Driven Learning with Noisy Labels", ICML', year=2018, cost=4 / 3
    )
    published: ClassVar[tuple[PublishedSettings, ...]] = (
        PublishedSettings(
            "CIFAR-10",
            "symmetric-excluding",
            (0.2, 0.4, 0.6),
            "official code",
            {},
            _TRAINING | {"rounds": 120, "learning_rate_drops": (41, 81)},
            f"6-layer CNN; {_PHASE_ONE}",
        ),
        PublishedSettings(
            "CIFAR-100",
            "symmetric-excluding",
            (0.2, 0.4, 0.6),
            "official code",
            {"warmup": 60},
            _TRAINING | {"rounds": 200, "learning_rate_drops": (81, 121, 161)},
            f"ResNet-44; {_PHASE_ONE}",
        ),
    )

    def __post_init__(self) -> None:
        check_integer(self.warmup, "warmup", minimum=0)
        check_integer(self.window, "window", minimum=1)
        check_real(self.n_deviations, "n_deviations", at_least=0)
        check_integer(self.n_neighbors, "n_neighbors", minimum=2)
        check_integer(self.n_observed, "n_observed", minimum=2)
        check_integer(self.group_size, "group_size", minimum=2)

    def phases(self, round: int) -> tuple[Phase, ...]:
        return (Phase("training", trains=(0,), evidence=(0,)),)

    def initial_state(self, problem: Problem) -> State:
        return {DIMENSIONS: torch.zeros(0), TURNING_ROUND: torch.tensor(-1)}

    def plan(self, phase: Phase, evidence: Evidence, state: State) -> Plan:
        dimensions = state[DIMENSIONS].tolist()
        dimensions.append(self._observed_dimension(evidence, dimensions))
        state[DIMENSIONS] = torch.tensor(dimensions)
        if int(state[TURNING_ROUND]) < 0 and self.turns(dimensions):
            state[TURNING_ROUND] = torch.tensor(evidence.round)
        weight = 1.0
        if int(state[TURNING_ROUND]) >= 0:
            expansion = dimensions[-1] / min(dimensions)
            weight = math.exp(-evidence.round / evidence.problem.rounds * expansion)
        plan = Method.plan(self, phase, evidence, state)
        return replace(plan, measures={"dimensionality": dimensions[-1], LABEL_WEIGHT: weight})

    def loss(self, step: Step) -> Tensor:
        logits = step.trained(step.batch.weak())
        weight = step.plan.measures[LABEL_WEIGHT]
        if weight == 1:
            return functional.cross_entropy(logits, step.batch.labels)
        n_classes = logits.shape[1]
        given = functional.one_hot(step.batch.labels, n_classes)
        predicted = functional.one_hot(logits.argmax(dim=1), n_classes)
        targets = weight * given + (1 - weight) * predicted
        step.show_targets(targets)
        return soft_cross_entropy(logits, targets)

    def turns(self, dimensions: list[float]) -> bool:
        """Whether the last of these dimensionalities, one per round, is the turning point."""
        if len(dimensions) <= self.warmup + self.window:
            return False
        before = dimensions[-self.window - 1 : -1]
        rise = dimensions[-1] - float(np.mean(before))
        return rise > self.n_deviations * float(np.std(before))

    def _observed_dimension(self, evidence: Evidence, so_far: list[float]) -> float:
        """The mean of a random part of the samples; where there is none, the number before it."""
        features = evidence.networks[0].features
        order = np.random.default_rng(evidence.seed).permutation(len(features))[: self.n_observed]
        groups = np.array_split(features[order], math.ceil(len(order) / self.group_size))
        each = np.concatenate([local_dimensionality(group, self.n_neighbors) for group in groups])
        defined = each[np.isfinite(each)]
        if len(defined):
            return float(defined.mean())
        return so_far[-1] if so_far else 1.0


def local_dimensionality(points: FloatArray, n_neighbors: int) -> FloatArray:
    """The local intrinsic dimensionality of every point: -1 / mean_j log(r_j / r_k).

    Here r_1 to r_k are the distances to its k nearest neighbors, which grow the slower, the more dimensions
    there are (Amsaleg et al., "Estimating Local Intrinsic Dimensionality", KDD 2015).

    Parameters
    ----------
    points : ndarray of shape (n, d)
        The points.
    n_neighbors : int
        The number k; all other points if there are fewer.

    Returns
    -------
    ndarray of shape (n,)
        NaN where all k neighbors are equally far away.
    """
    values = points.astype(np.float64)
    squared = (values**2).sum(axis=1)
    distances = np.sqrt(np.maximum(squared[:, None] + squared - 2 * values @ values.T, 0))
    np.fill_diagonal(distances, np.inf)
    nearest = np.sort(distances, axis=1)[:, : min(n_neighbors, len(points) - 1)]
    if nearest.shape[1] == 0:
        return np.full(len(points), np.nan)
    farthest = nearest[:, -1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.maximum(nearest / farthest, _SMALLEST_RATIO)
        dimensionality: FloatArray = -1 / np.log(ratios).mean(axis=1)
    return np.where(np.isfinite(dimensionality), dimensionality, np.nan)
