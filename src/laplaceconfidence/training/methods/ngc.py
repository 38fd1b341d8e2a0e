"""NGC (Wu et al., 2021): labels corrected by propagation, samples selected by components of the graph."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn
from torch.nn import functional

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.confidence.largest_component import largest_components
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.features.scale import unit_length
from laplaceconfidence.graph.neighbors import Neighbors, find_neighbors
from laplaceconfidence.solve.propagation import propagate_labels
from laplaceconfidence.training.augment.mixing import MixUp
from laplaceconfidence.training.losses import contrastive_losses, soft_cross_entropy
from laplaceconfidence.training.methods.interface import Evidence, Method, Phase, Plan, Problem, State
from laplaceconfidence.training.methods.published import MethodFacts, PublishedSettings
from laplaceconfidence.training.methods.warm_up import WARM_UP
from laplaceconfidence.training.step import Step
from laplaceconfidence.validation import check_integer, check_real

PROJECTION = "projection"
LABELS, KEPT = "labels", "kept"
LOG_PREDICTIONS, N_AVERAGED = "log_predictions", "n_averaged"  # in the state

_N_PROJECTED = 64
_SIMILARITY_POWER = 3
_PROPAGATION = 0.5  # alpha of the propagation
_TOLERANCE, _MAX_ITERATIONS = 1e-6, 20  # of the conjugate gradients
_AVERAGE_DECAY = 0.6
_SMALLEST = 1e-12


def _settings(data: str, noise: str, rates: tuple[float, ...], **method: Any) -> PublishedSettings:
    training: dict[str, Any] = {
        "network": "preact_resnet18",
        "rounds": 300,
        "batch_size": 512,
        "optimizer": "sgd",
        "learning_rate": 0.15,
        "momentum": 0.9,
        "weight_decay": 1e-4,
        "schedule": "cosine",
        "strong": "augmix",
    }
    note = "the learning rate falls to 0.0002"
    return PublishedSettings(data, noise, rates, "official code", method, training, note)


@dataclass(frozen=True, slots=True)
class NGC(Method):
    """NGC: a graph of projected features corrects labels, and selects the samples that hang together.

    Before every round after the warm-up, labels are propagated over the graph of the projections: at first
    the given ones, later the averaged predictions and the labels of selected samples. A given label that gets
    more than ``low_threshold`` stays, the others are replaced by the class with the largest weight. Samples
    with a weight above ``high_threshold`` in the largest component of their class are selected. The network
    is trained with MixUp on these, and on all samples with two contrastive losses: the two views of a sample,
    and selected samples of one label. As in the published code, the temperature is that of the first of the
    two alone. A class of which nothing is above the threshold has no selected sample; there, it gets one.

    Parameters
    ----------
    warmup : int, default=5
        Rounds of training with MixUp on the given labels that come first.
    n_neighbors : int, default=30
        Neighbors of each sample in the graph; components are those of mutual neighbors.
    low_threshold : float or None, default=None
        Weight above which the given label stays; ``None`` is 1 / number of classes.
    high_threshold : float, default=0.7
        Weight above which a sample may be selected.
    temperature : float, default=0.3
        What cosines are divided by in the contrast of two views.
    mix_alpha : float, default=8
        Parameter of the beta distribution that MixUp draws its weights from.
    instance_weight, supervised_weight : float, default=1
        Weights of the two contrastive losses.

    References
    ----------
    Wu et al., "NGC: A Unified Framework for Learning with Open-World Noisy Data", ICCV 2021.
    """

    warmup: int = 5
    n_neighbors: int = 30
    low_threshold: float | None = None
    high_threshold: float = 0.7
    temperature: float = 0.3
    mix_alpha: float = 8.0
    instance_weight: float = 1.0
    supervised_weight: float = 1.0
    n_networks: ClassVar[int] = 1
    facts: ClassVar[MethodFacts] = MethodFacts(
        'Wu et al., "NGC: A Unified Framework for Learning with Open-World Noisy Data", ICCV',
        year=2021,
        cost=13 / 3,  # if all samples are selected
    )
    published: ClassVar[tuple[PublishedSettings, ...]] = (
        _settings("CIFAR-10", "symmetric", (0.2, 0.5, 0.8, 0.9), low_threshold=0.1),
        _settings("CIFAR-10", "asymmetric", (0.4,), warmup=30, n_neighbors=10, low_threshold=0.1),
        _settings(
            "CIFAR-100",
            "symmetric",
            (0.2, 0.5, 0.8, 0.9),
            warmup=30,
            n_neighbors=200,
            low_threshold=0.01,
            high_threshold=0.6,
        ),
    )

    def __post_init__(self) -> None:
        check_integer(self.warmup, "warmup", minimum=0)
        check_integer(self.n_neighbors, "n_neighbors", minimum=1)
        if self.low_threshold is not None:
            check_real(self.low_threshold, "low_threshold", at_least=0, at_most=1)
        check_real(self.high_threshold, "high_threshold", at_least=0, below=1)
        check_real(self.temperature, "temperature", above=0)
        check_real(self.mix_alpha, "mix_alpha", above=0)
        check_real(self.instance_weight, "instance_weight", at_least=0)
        check_real(self.supervised_weight, "supervised_weight", at_least=0)

    def phases(self, round: int) -> tuple[Phase, ...]:
        if round < self.warmup:
            return (Phase(WARM_UP, trains=(0,), cost=2),)
        return (Phase("graph", trains=(0,), evidence=(0,), cost=4),)

    def heads(self, n_features: int, n_classes: int) -> dict[str, nn.Module]:
        return {PROJECTION: nn.Linear(n_features, _N_PROJECTED)}

    def initial_state(self, problem: Problem) -> State:
        n = problem.n_samples
        return {
            LOG_PREDICTIONS: torch.zeros(n, problem.n_classes),
            N_AVERAGED: torch.tensor(0),
            LABELS: problem.labels.clone(),
            KEPT: torch.zeros(n, dtype=torch.bool),
        }

    def plan(self, phase: Phase, evidence: Evidence, state: State) -> Plan:
        if phase.name == WARM_UP:
            return Method.plan(self, phase, evidence, state)
        given, n_classes = evidence.labels, evidence.problem.n_classes
        before = _one_hot(given, n_classes)
        averaged = _average_predictions(evidence.networks[0].probabilities, state)
        if int(state[N_AVERAGED]) > 1:
            kept, labels = state[KEPT].cpu().numpy(), state[LABELS].cpu().numpy()
            before = np.where(kept[:, None], _one_hot(labels, n_classes), averaged)
        neighbors = self._neighbors(evidence)
        weights = propagated(neighbors, before)
        confidence = np.where(given == MISSING, 0.0, weights[np.arange(len(given)), given])
        stays = confidence > (1 / n_classes if self.low_threshold is None else self.low_threshold)
        labels = np.where(stays, given, weights.argmax(axis=1))
        above = stays | (weights.max(axis=1) > self.high_threshold)
        kept = mutual_components(neighbors, labels, above)
        state |= {LABELS: torch.from_numpy(labels), KEPT: torch.from_numpy(kept)}
        every = Plan.over(np.arange(len(given)), confidence=confidence.astype(np.float32))
        return replace(every, measures={"kept_share": float(kept.mean())})

    def loss(self, step: Step) -> Tensor:
        index, views = step.batch.index, [step.batch.weak(), step.batch.strong()]
        if step.phase.name == WARM_UP:
            every = torch.ones_like(step.batch.labels, dtype=torch.bool)
            return self._mixed_loss(step, views, step.batch.labels, every)
        labels, kept = step.state[LABELS][index], step.state[KEPT][index]
        instance, supervised = self._contrasts(step, views, labels, kept)
        step.measure("instance_contrast", instance * step.batch.weight)
        step.measure("supervised_contrast", supervised * step.batch.weight)
        classified = self._mixed_loss(step, views, labels, kept)
        return classified + self.instance_weight * instance + self.supervised_weight * supervised

    def final_confidence(self, evidence: Evidence, state: State) -> FloatArray:
        """The weight of the given label when the predictions are propagated over the graph of all samples."""
        weights = propagated(self._neighbors(evidence), evidence.networks[0].probabilities)
        given = evidence.labels
        confidence: FloatArray = np.where(given == MISSING, np.nan, weights[np.arange(len(given)), given])
        return confidence

    def _neighbors(self, evidence: Evidence) -> Neighbors:
        unit = unit_length(evidence.networks[0].heads[PROJECTION].astype(np.float32))
        return find_neighbors(
            unit,
            min(self.n_neighbors, len(unit) - 1),
            n_jobs=torch.get_num_threads(),
            random_state=evidence.seed % 2**31,
        )

    def _mixed_loss(self, step: Step, views: list[Tensor], labels: Tensor, kept: Tensor) -> Tensor:
        """Cross-entropy on selected samples of both views, mixed with selected ones of the whole batch."""
        of_all = step.gather_rows(kept)
        rows = torch.nonzero(of_all.repeat(2)).flatten()  # of the selected, in the views one after the other
        weight, order = MixUp(self.mix_alpha).draw(len(rows), step.generator)
        everyone = torch.cat([step.gather_rows(view) for view in views])
        all_labels = step.gather_rows(labels).clamp_min(0).repeat(2)
        if not bool(kept.any()):
            return torch.zeros((), device=labels.device)
        partner_of = torch.zeros(2 * len(of_all), dtype=torch.long, device=labels.device)
        partner_of[rows] = rows[order.to(rows.device)]
        positions = step.own_rows(torch.arange(len(of_all), device=labels.device))[kept]
        partners = partner_of[torch.cat([positions, len(of_all) + positions])]
        targets = functional.one_hot(labels[kept], step.problem.n_classes).repeat(2, 1)
        other_targets = functional.one_hot(all_labels[partners], step.problem.n_classes)
        inputs = torch.cat([view[kept] for view in views])
        logits = step.trained(weight * inputs + (1 - weight) * everyone[partners])
        loss = soft_cross_entropy(logits, weight * targets + (1 - weight) * other_targets)
        # A mean over the selected samples of the whole batch, of which this process may hold any number; the
        # loop weights this process by its share of the batch.
        share = len(logits) * step.team.size / len(rows)
        return loss * share / step.batch.weight

    def _contrasts(
        self, step: Step, views: list[Tensor], labels: Tensor, kept: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The contrast of the first views with both views of all samples, by sample and by label."""
        first, second = (
            functional.normalize(step.trained.outputs(view).heads[PROJECTION].float(), dim=1)
            for view in views
        )
        everyone = torch.cat([step.gather_rows_with_gradient(view) for view in (first, second)])
        n_batch = len(everyone) // 2
        numbers = torch.arange(2 * n_batch, device=labels.device)
        itself = step.own_rows(numbers[:n_batch]).unsqueeze(1)
        allowed, other_view = numbers != itself, numbers == itself + n_batch
        all_labels, all_kept = (step.gather_rows(values).repeat(2) for values in (labels, kept))
        alike = (all_labels == labels.unsqueeze(1)) & all_kept & kept.unsqueeze(1)
        cosines = first @ everyone.T
        instance = contrastive_losses(cosines / self.temperature, other_view, allowed)
        supervised = contrastive_losses(cosines, other_view | alike, allowed)
        return instance.mean(), supervised.mean()


def propagated(neighbors: Neighbors, labels: FloatArray) -> FloatArray:
    """Soft labels after propagation: the solution of (I - 0.5 S) Z = Y, where Y has columns of equal sums.

    Parameters
    ----------
    neighbors : Neighbors
        Neighbors of every sample; the cubes of their cosines are the weights of the graph.
    labels : ndarray of shape (n, C)
        Weights of the classes.

    Returns
    -------
    ndarray of shape (n, C)
        Rows sum to 1.
    """
    n, k = neighbors.indices.shape
    cubes = np.maximum(neighbors.similarities, 0).astype(np.float64).ravel() ** _SIMILARITY_POWER
    ends = np.maximum(neighbors.indices, 0).ravel()  # where no neighbor was found, the weight is 0
    directed = sparse.csr_array((cubes, (np.repeat(np.arange(n), k), ends)), shape=(n, n))
    graph = (directed + directed.T).tocsr()
    balanced = labels / np.maximum(labels.sum(axis=0), _SMALLEST)
    found = propagate_labels(
        graph,
        balanced,
        labels.shape[1],
        alpha=_PROPAGATION,
        tol=_TOLERANCE,
        max_iter=_MAX_ITERATIONS,
        order=neighbors.order,
        n_jobs=torch.get_num_threads(),
    )
    weights = np.maximum(found.solution, 0)
    total = weights.sum(axis=1, keepdims=True)
    shares: FloatArray = np.where(total > 0, weights / np.maximum(total, _SMALLEST), 1 / labels.shape[1])
    return shares


def mutual_components(neighbors: Neighbors, labels: IntArray, candidates: BoolArray) -> BoolArray:
    """The candidates in the largest component of their class, where mutual neighbors are connected.

    Parameters
    ----------
    neighbors : Neighbors
        Neighbors of every sample.
    labels : ndarray of shape (n,)
        Labels of the samples.
    candidates : ndarray of shape (n,)
        The samples that may be selected.

    Returns
    -------
    ndarray of shape (n,)
    """
    if not candidates.any():
        return candidates.copy()
    n, k = neighbors.indices.shape
    starts, ends = np.repeat(np.arange(n), k), neighbors.indices.ravel()
    starts, ends = starts[ends >= 0], ends[ends >= 0]
    forward = sparse.csr_array((np.ones(len(starts)), (starts, ends)), shape=(n, n))
    mutual = forward.multiply(forward.T).tocoo()
    return largest_components(mutual.row, mutual.col, np.where(candidates, labels, MISSING))


def _average_predictions(probabilities: FloatArray, state: State) -> FloatArray:
    """The softmax of averaged logits, later ones counting more.

    Logarithms of probabilities are logits up to a constant per sample, which the softmax removes.
    """
    newest = torch.from_numpy(probabilities).float().clamp_min(_SMALLEST).log()
    n_averaged = int(state[N_AVERAGED]) + 1
    average = _AVERAGE_DECAY * state[LOG_PREDICTIONS].cpu() + (1 - _AVERAGE_DECAY) * newest
    state |= {LOG_PREDICTIONS: average, N_AVERAGED: torch.tensor(n_averaged)}
    predictions: FloatArray = (average / (1 - _AVERAGE_DECAY**n_averaged)).softmax(dim=1).numpy()
    return predictions


def _one_hot(labels: IntArray, n_classes: int) -> FloatArray:
    """(n, C) 1 at the label; rows of samples without one are 0."""
    one_hot: FloatArray = np.eye(n_classes + 1)[labels][:, :n_classes]
    return one_hot
