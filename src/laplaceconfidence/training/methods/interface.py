"""What a training method looks like to the loop, and what the loop hands to a method.

A method is a frozen dataclass without a loop of its own. The loop owns networks, optimizers, devices, seeds,
checkpoints and processes, and asks the method five things:

- ``phases(round)``: which networks are trained in this round, in which order, and on how many passes;
- ``plan(phase, evidence, state)``: once before every phase, from what the networks make of the training
  set: which samples are used, and what is known about them (confidences, splits);
- ``loss(step)``: the loss of one batch;
- ``after_step(step)``: what the method itself keeps up to date (averaged teachers, learned labels, queues);
- ``final_confidence(evidence, state)``: at the end, how far each given label is to be trusted.

Everything a method remembers is a tensor in ``state``, which the loop saves and restores.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.inputs import at_given_labels
from laplaceconfidence.data.labels import MISSING

if TYPE_CHECKING:
    from laplaceconfidence.training.step import Step

State = dict[str, Tensor]
"""What a method remembers, by name: per-sample tensors, label tables, queues; scalars as 0-d tensors."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What a method may know of its task. Samples are numbered 0..n-1 within the training part."""

    labels: Tensor  # (n,) given labels on the training device, -1 where missing
    n_classes: int
    rounds: int
    batch_size: int
    seed: int
    sample_shape: tuple[int, ...]  # (channels, height, width) or (features,)

    @property
    def n_samples(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of a round in which some networks are trained.

    ``evidence`` names the networks whose outputs on the whole training set ``plan`` wants to see. ``fresh``
    networks start anew after the plan was made. ``learning_rate`` replaces that of the schedule.
    """

    name: str
    trains: tuple[int, ...]
    passes: int = 1
    evidence: tuple[int, ...] = ()
    fresh: tuple[int, ...] = ()
    learning_rate: float | None = None

    def __str__(self) -> str:
        return f"{self.name}, network {' and '.join(str(network + 1) for network in self.trains)}"


@dataclass(frozen=True, slots=True, eq=False)
class NetworkEvidence:
    """What one network makes of every sample: eval mode, no augmentation."""

    features: FloatArray  # (n, d)
    probabilities: FloatArray  # (n, C)

    def losses(self, labels: IntArray) -> FloatArray:
        """Cross-entropy of the given labels, NaN where there is none."""
        at_label = at_given_labels(self.probabilities, labels)
        losses: FloatArray = -np.log(np.maximum(at_label, np.finfo(np.float32).tiny))
        return losses


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What ``plan`` decides from: the outputs of the networks it asked for and the given labels."""

    networks: Mapping[int, NetworkEvidence]
    labels: IntArray  # (n,) -1 where missing
    problem: Problem
    round: int
    seed: int  # for this plan and nothing else
    inputs: Callable[[], FloatArray]  # reads the samples themselves, (n, *sample_shape)

    def mean_probabilities(self) -> FloatArray:
        """(n, C) the mean prediction of the networks."""
        mean: FloatArray = np.mean([one.probabilities for one in self.networks.values()], axis=0)
        return mean


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The samples of a phase and what is known about them.

    ``streams`` are sample numbers by name (a sample may occur more than once); the first stream sets the
    length of the phase, the others go round as often as needed. A tensor named "confidence" is recorded and
    guarded.
    """

    streams: dict[str, Tensor]
    tensors: dict[str, Tensor] = field(default_factory=dict)
    batch_sizes: dict[str, int] = field(default_factory=dict)  # where they differ from the run's
    measures: dict[str, float] = field(default_factory=dict)  # for the history

    def to(self, device: torch.device) -> Plan:
        """The plan with its tensors on a device; sample numbers stay on the CPU, where batches are made."""
        return replace(self, tensors={name: tensor.to(device) for name, tensor in self.tensors.items()})

    def as_dict(self) -> dict[str, Any]:
        """Plain values and tensors only, for checkpoints: ``Plan(**plan.as_dict())`` is the plan."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def over(cls, rows: FloatArray | IntArray | Tensor, **tensors: FloatArray | Tensor) -> Plan:
        """One stream over ``rows``, with tensors about all samples."""
        return cls(
            {"samples": torch.as_tensor(rows)},
            {name: torch.as_tensor(value) for name, value in tensors.items()},
        )


class Method(ABC):
    """A training method; see the module's docstring. Subclasses are frozen dataclasses of its settings."""

    @property
    @abstractmethod
    def n_networks(self) -> int:
        """How many networks the method works with; a field or class variable in most methods."""

    @abstractmethod
    def phases(self, round: int) -> tuple[Phase, ...]:
        """What happens in a round, counted from 0."""

    @abstractmethod
    def loss(self, step: Step) -> Tensor:
        """The loss of one step; with several trained networks, the sum of theirs."""

    @property
    def predictors(self) -> tuple[int, ...]:
        """The networks whose mean softmax is the prediction."""
        return tuple(range(self.n_networks))

    def heads(self, n_features: int, n_classes: int) -> dict[str, nn.Module]:
        """Modules on top of the penultimate features that every network gets besides its classifier."""
        return {}

    def initial_state(self, problem: Problem) -> State:
        """What the method remembers, before the first round."""
        return {}

    def plan(self, phase: Phase, evidence: Evidence, state: State) -> Plan:
        """The samples of the phase: all that have a label, unless the method says otherwise."""
        return Plan.over(np.flatnonzero(evidence.labels != MISSING))

    def after_step(self, step: Step) -> None:  # noqa: B027 (a hook that most methods leave empty)
        """Called when the optimizers have made their step."""

    def final_confidence(self, evidence: Evidence, state: State) -> FloatArray:
        """(n,) how far each given label is to be trusted: its predicted probability, NaN where it is missing.

        ``state`` describes the training part only; ``evidence`` may be about other samples as well.
        """
        return at_given_labels(evidence.mean_probabilities(), evidence.labels)
