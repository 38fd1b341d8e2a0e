"""TopoFilter (Wu et al., 2020): training on the largest connected component of every class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from laplaceconfidence.arrays import BoolArray, FloatArray, IntArray
from laplaceconfidence.confidence.largest_component import agree_with_neighbors, largest_components
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.graph.neighbors import euclidean_neighbors
from laplaceconfidence.training.methods.interface import Evidence, Method, Phase, Plan, Problem, State
from laplaceconfidence.training.methods.published import MethodFacts, PublishedSettings
from laplaceconfidence.training.methods.warm_up import WARM_UP, warm_up_loss
from laplaceconfidence.training.step import Step
from laplaceconfidence.validation import check_integer, check_real

KEPT = "kept"

_TRAINING = {
    "rounds": 180,
    "batch_size": 128,
    "optimizer": "adam",
    "learning_rate": 0.001,
    "momentum": 0.9,
    "weight_decay": 1e-4,
    "learning_rate_drops": (60, 120),
    "drop_factor": 0.5,
}
_NOTE = "ResNet-18; the authors choose the round on clean labels"


@dataclass(frozen=True, slots=True)
class TopoFilter(Method):
    """TopoFilter: samples are kept that hang together with most of their class in the space of features.

    After some rounds of cross-entropy, the nearest neighbors by penultimate features are connected where
    their labels agree, and the largest connected component of every class joins the samples that are kept.
    Of these, those leave again whose label is not that of most of their neighbors among them. The network is
    trained on what is kept, which is selected anew every few rounds. A class that would lose all its samples
    keeps its component. Features are those of samples without augmentation; the published code augments them.

    Parameters
    ----------
    warmup : int, default=30
        Rounds of cross-entropy on the given labels that come first.
    every : int, default=5
        Rounds from one selection to the next.
    n_neighbors : int, default=4
        Neighbors per sample in the graph of the components, by Euclidean distance; an edge exists if either
        end is among the neighbors of the other. More suit noise of 80% and above.
    n_outlier_neighbors : int, default=32
        Neighbors among the kept samples that decide whether a sample stays.
    zeta : float or None, default=0.5
        Smallest share of those neighbors that must have the same label; ``None`` lets every sample stay.

    References
    ----------
    Wu et al., "A Topological Filter for Learning with Label Noise", NeurIPS 2020.
    """

    warmup: int = 30
    every: int = 5
    n_neighbors: int = 4
    n_outlier_neighbors: int = 32
    zeta: float | None = 0.5
    n_networks: ClassVar[int] = 1
    facts: ClassVar[MethodFacts] = MethodFacts(
        'Wu et al., "A Topological Filter for Learning with Label Noise", NeurIPS',
        year=2020,
        cost=1 + 1 / 15,  # if all samples are kept; a forward pass over all of them every five rounds
    )
    published: ClassVar[tuple[PublishedSettings, ...]] = tuple(
        PublishedSettings(data, noise, rates, "official code", {}, _TRAINING, _NOTE)
        for data in ("CIFAR-10", "CIFAR-100")
        for noise, rates in (("symmetric", (0.2, 0.4, 0.6, 0.8)), ("pair", (0.2, 0.3, 0.4)))
    )

    def __post_init__(self) -> None:
        check_integer(self.warmup, "warmup", minimum=1)
        check_integer(self.every, "every", minimum=1)
        check_integer(self.n_neighbors, "n_neighbors", minimum=1)
        check_integer(self.n_outlier_neighbors, "n_outlier_neighbors", minimum=1)
        if self.zeta is not None:
            check_real(self.zeta, "zeta", at_least=0, at_most=1)

    def phases(self, round: int) -> tuple[Phase, ...]:
        if round < self.warmup:
            return (Phase(WARM_UP, trains=(0,)),)
        selects = (round - self.warmup) % self.every == 0
        return (Phase("filtered", trains=(0,), evidence=(0,) if selects else ()),)

    def initial_state(self, problem: Problem) -> State:
        return {KEPT: torch.zeros(problem.n_samples, dtype=torch.bool)}

    def plan(self, phase: Phase, evidence: Evidence, state: State) -> Plan:
        if phase.name == WARM_UP:
            return Method.plan(self, phase, evidence, state)
        if phase.evidence:
            before = state[KEPT].cpu().numpy()
            state[KEPT] = torch.from_numpy(self.select(evidence, before))
        kept = state[KEPT].cpu()
        plan = Plan.over(torch.nonzero(kept).flatten(), confidence=kept.float())
        return replace(plan, measures={"kept_share": float(kept.float().mean())})

    def loss(self, step: Step) -> Tensor:
        return warm_up_loss(step, entropy_penalty=False)

    def final_confidence(self, evidence: Evidence, state: State) -> FloatArray:
        """1 for the samples that a selection from the final features keeps, otherwise 0."""
        kept = self.select(evidence, np.zeros(len(evidence.labels), dtype=bool))
        confidence: FloatArray = np.where(evidence.labels == MISSING, np.nan, kept.astype(np.float64))
        return confidence

    def select(self, evidence: Evidence, before: BoolArray) -> BoolArray:
        """The samples to train on.

        Parameters
        ----------
        evidence : Evidence
            Features of the network, and given labels.
        before : ndarray of shape (n_samples,)
            The samples that were kept so far.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        labeled = np.flatnonzero(evidence.labels != MISSING)
        features, codes = evidence.networks[0].features[labeled], evidence.labels[labeled]
        component = _components(features, codes, self.n_neighbors)
        kept = component | before[labeled]
        if self.zeta is not None and kept.sum() > 1:
            kept[kept] = _agreeing(
                features[kept], codes[kept], evidence.problem.n_classes, self.n_outlier_neighbors, self.zeta
            )
        emptied = ~np.isin(codes, codes[kept])
        selected = np.zeros(len(evidence.labels), dtype=bool)
        selected[labeled] = kept | (component & emptied)
        return selected


def _components(features: FloatArray, codes: IntArray, n_neighbors: int) -> BoolArray:
    """Which samples are in the largest component of their class."""
    if len(features) < 2:
        return np.ones(len(features), dtype=bool)
    ends = euclidean_neighbors(
        features, min(n_neighbors, len(features) - 1), n_jobs=torch.get_num_threads()
    ).indices
    starts = np.repeat(np.arange(len(ends)), ends.shape[1])
    return largest_components(starts, ends.ravel(), codes)


def _agreeing(
    features: FloatArray, codes: IntArray, n_classes: int, n_neighbors: int, zeta: float
) -> BoolArray:
    """Which samples have the label of most of their neighbors."""
    count = min(n_neighbors, len(features) - 1)
    neighbors = euclidean_neighbors(features, count, n_jobs=torch.get_num_threads())
    return agree_with_neighbors(neighbors, codes, n_classes, zeta)
