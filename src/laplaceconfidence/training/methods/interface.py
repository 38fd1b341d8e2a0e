"""The interface between a training method and the loop.

A method is a frozen dataclass of its settings without a loop of its own. The loop owns networks, optimizers,
devices, seeds, checkpoints and processes, and calls five functions of the method:

- ``phases(round)``: which networks are trained in this round, in which order, and for how many passes;
- ``plan(phase, evidence, state)``: once before every phase, from the outputs of the networks on the training
  set: which samples are used, and what is known about them (confidences, splits);
- ``loss(step)``: the loss of one batch (``losses(step)`` for several steps of the optimizers, or none);
- ``after_step(step)``: updates of the method's own state (averaged teachers, learned labels, queues);
- ``final_confidence(evidence, state)``: at the end, the confidence of each given label.

The state of a method is a dict of tensors, which the loop saves and restores, like the modules that a method
has besides the networks (``modules``). A method that trains in stages describes them by ``stage(round)``:
which rounds are one training of their own, who predicts in them, and whether their networks may be kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from laplaceconfidence.arrays import FloatArray, IntArray
from laplaceconfidence.confidence.inputs import at_given_labels
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.training.methods.published import MethodFacts, PublishedSettings

if TYPE_CHECKING:
    from laplaceconfidence.training.step import Step

NO_CLASS = -2
"""Code of an audited label where the person found that no class fits."""

State = dict[str, Tensor]
"""The state of a method, by name: per-sample tensors, label tables, queues; scalars as 0-d tensors."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The facts about a run that a method may use.

    Attributes
    ----------
    labels : Tensor of shape (n_samples,)
        Given labels of the training part on the training device, -1 where missing. Samples are numbered
        from 0 within the training part.
    n_classes : int
        Number of classes.
    rounds : int
        All rounds of the run.
    batch_size : int
        Samples per step.
    seed : int
        Seed of the run.
    sample_shape : tuple of int
        (channels, height, width) or (features,).
    mirrors : bool
        Whether weak views mirror images, so that an image and its mirror image are of one class.
    audited : Tensor of shape (n_samples,) or None
        Labels that a person has verified, on the training device: -1 where nobody has, -2 (``NO_CLASS``)
        where no class fits. Only methods with ``takes_audited`` are given them.
    """

    labels: Tensor
    n_classes: int
    rounds: int
    batch_size: int
    seed: int
    sample_shape: tuple[int, ...]
    mirrors: bool = False
    audited: Tensor | None = None

    @property
    def n_samples(self) -> int:
        """Number of samples in the training part."""
        return len(self.labels)


@dataclass(frozen=True, slots=True)
class Stage:
    """Consecutive rounds that are one training of their own, such as one that only selects samples.

    Attributes
    ----------
    first_round : int, default=0
        The first round of the stage, counted from 0. The schedule of the learning rate starts there.
    rounds : int, optional
        Rounds of the stage, over which the schedule of the run is spread; by default all that are left.
    predictors : tuple of int, optional
        The networks that predict; by default the ``predictors`` of the method.
    counts : bool, default=True
        Whether the networks of the stage may be kept in the end. Its rounds are otherwise left out of the
        best and the last rounds in the summary, too, and the best round so far is forgotten after the first
        round of the next stage.
    """

    first_round: int = 0
    rounds: int | None = None
    predictors: tuple[int, ...] | None = None
    counts: bool = True


@dataclass(frozen=True, slots=True)
class WeightCopy:
    """Weights that one network takes from another.

    Attributes
    ----------
    target : int
        The network whose weights are replaced.
    source : int
        The network that they are taken from; it may be the same one.
    best : bool, default=False
        Whether they are those of the best round so far, by held-out labels, instead of the present ones. They
        are the present ones, too, where no labels are held out.
    """

    target: int
    source: int
    best: bool = False


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of a round in which some networks are trained.

    Attributes
    ----------
    name : str
        What the phase is called in the history.
    trains : tuple of int
        Networks that are trained.
    passes : int, default=1
        Passes over the first stream of the plan.
    evidence : tuple of int, default=()
        Networks whose outputs on the whole training set are passed to ``plan``.
    fresh : tuple of int, default=()
        Networks that get new random weights once the plan is made.
    learning_rate : float, optional
        Replaces the learning rate of the schedule; 0 trains nothing.
    cost : float, default=1
        Time of a pass relative to one of plain training: a forward pass without gradients is a third. The
        time that is left is estimated from it until such a phase was measured.
    best_evidence : bool, default=False
        Whether the evidence is that of the best round so far, by held-out labels, if any are held out.
    fresh_parts : tuple of str, default=()
        Parts of the ``fresh`` networks that get new weights: names of ``heads``, or "classifier", the layer
        that takes the penultimate features. By default everything is new.
    copies : tuple of WeightCopy, default=()
        Weights that are copied after ``fresh`` ones were drawn, in this order.
    relative_learning_rate : float, optional
        Replaces the learning rate of the schedule by this share of the highest one of the run.
    """

    name: str
    trains: tuple[int, ...]
    passes: int = 1
    evidence: tuple[int, ...] = ()
    fresh: tuple[int, ...] = ()
    learning_rate: float | None = None
    cost: float = field(default=1.0, compare=False)
    best_evidence: bool = False
    fresh_parts: tuple[str, ...] = ()
    copies: tuple[WeightCopy, ...] = ()
    relative_learning_rate: float | None = None

    def __str__(self) -> str:
        return f"{self.name}, network {' and '.join(str(network + 1) for network in self.trains)}"


@dataclass(frozen=True, slots=True, eq=False)
class NetworkEvidence:
    """Outputs of one network for every sample, in eval mode and without augmentation.

    Attributes
    ----------
    features : ndarray of shape (n_samples, n_features)
        Penultimate features.
    probabilities : ndarray of shape (n_samples, n_classes)
        Class probabilities.
    heads : mapping of str to ndarray of shape (n_samples, ...)
        Outputs of the method's own heads, by the names of ``Method.heads``.
    """

    features: FloatArray
    probabilities: FloatArray
    heads: Mapping[str, FloatArray] = field(default_factory=dict)

    def losses(self, labels: IntArray) -> FloatArray:
        """Cross-entropy of the given labels, NaN where there is none."""
        at_label = at_given_labels(self.probabilities, labels)
        losses: FloatArray = -np.log(np.maximum(at_label, np.finfo(np.float32).tiny))
        return losses


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    r"""The arguments of ``plan`` and ``final_confidence``.

    Attributes
    ----------
    networks : mapping of int to NetworkEvidence
        Outputs of the networks that the phase names.
    labels : ndarray of shape (n_samples,)
        Given labels, -1 where missing.
    problem : Problem
        The facts about the run.
    round : int
        The current round, counted from 0.
    seed : int
        A seed for this plan and nothing else.
    inputs : callable
        Reads the samples themselves: an array of shape (n_samples, \*sample_shape), images with sides of at
        most 96 pixels.
    modules : mapping of str to torch.nn.Module
        The method's own modules. ``plan`` may train them: what it changes is saved, and all processes get it.
    """

    networks: Mapping[int, NetworkEvidence]
    labels: IntArray
    problem: Problem
    round: int
    seed: int
    inputs: Callable[[], FloatArray]
    modules: Mapping[str, nn.Module] = field(default_factory=dict)

    def mean_probabilities(self) -> FloatArray:
        """Mean class probabilities over the networks, of shape (n_samples, n_classes)."""
        mean: FloatArray = np.mean([one.probabilities for one in self.networks.values()], axis=0)
        return mean


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The samples of a phase and what is known about them.

    Attributes
    ----------
    streams : dict of str to Tensor
        Sample numbers by name; a sample may occur more than once. The first stream sets the length of the
        phase, the others are repeated as often as needed. The order of the samples is drawn from seeds that
        are derived from these names.
    tensors : dict of str to Tensor
        Tensors for the steps of the phase. One named "confidence" is also recorded in every round.
    batch_sizes : dict of str to int
        Batch sizes by stream, where they differ from that of the run.
    measures : dict of str to float
        Numbers for the history.
    """

    streams: dict[str, Tensor]
    tensors: dict[str, Tensor] = field(default_factory=dict)
    batch_sizes: dict[str, int] = field(default_factory=dict)
    measures: dict[str, float] = field(default_factory=dict)

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
            {"samples": torch.as_tensor(rows).cpu()},
            {name: torch.as_tensor(value) for name, value in tensors.items()},
        )


class Method(ABC):
    """Base class of training methods, which are frozen dataclasses of their settings.

    Attributes
    ----------
    facts : MethodFacts or None
        Paper, needs and cost, for lists of methods.
    published : tuple of PublishedSettings
        Settings that were published, by data set and noise.
    sums_logits : bool
        Whether the prediction of several networks is that of their summed logits; by default it is the mean
        of their class probabilities.
    """

    facts: ClassVar[MethodFacts | None] = None
    published: ClassVar[tuple[PublishedSettings, ...]] = ()
    sums_logits: ClassVar[bool] = False

    @property
    @abstractmethod
    def n_networks(self) -> int:
        """Number of networks; a field or class variable in most methods."""

    @abstractmethod
    def phases(self, round: int) -> tuple[Phase, ...]:
        """The phases of a round.

        Parameters
        ----------
        round : int
            Counted from 0.

        Returns
        -------
        tuple of Phase
        """

    @abstractmethod
    def loss(self, step: Step) -> Tensor:
        """The loss of one step; with several trained networks, the sum of their losses.

        Parameters
        ----------
        step : Step
            Batches, networks, plan and state.

        Returns
        -------
        Tensor
            A scalar.
        """

    def losses(self, step: Step) -> Iterator[Tensor]:
        """The losses of one batch: after each of them the optimizers make a step; by default ``loss``.

        A method that makes several steps per batch yields several losses, each computed with the weights
        after the step before it. One that yields none leaves the weights as they are. All processes have to
        yield equally many, so what is yielded may depend on the whole batch only.

        Parameters
        ----------
        step : Step
            Batches, networks, plan and state.

        Yields
        ------
        Tensor
            A scalar.
        """
        yield self.loss(step)

    def for_rounds(self, rounds: int) -> Self:
        """The method as it is used in a run of so many rounds; by default unchanged.

        Settings that depend on the number of rounds are filled in here, and numbers of rounds that cannot
        work are refused. Everything else is asked of the method that is returned.

        Parameters
        ----------
        rounds : int
            All rounds of the run.

        Returns
        -------
        Method
        """
        return self

    def stage(self, round: int) -> Stage:
        """The stage that a round belongs to; by default the whole run is one.

        Parameters
        ----------
        round : int
            Counted from 0.

        Returns
        -------
        Stage
        """
        return Stage()

    @property
    def predictors(self) -> tuple[int, ...]:
        """The networks that predict, together if there are several (see ``sums_logits``)."""
        return tuple(range(self.n_networks))

    def predictors_in(self, round: int) -> tuple[int, ...]:
        """The networks that predict after a round: those of its stage, if it names any."""
        of_stage = self.stage(round).predictors
        return self.predictors if of_stage is None else of_stage

    @property
    def takes_audited(self) -> bool:
        """Whether the method uses labels that a person has verified, ``problem.audited``."""
        return False

    def heads(self, n_features: int, n_classes: int) -> dict[str, nn.Module]:
        """Modules on top of the penultimate features that every network gets besides its classifier.

        Parameters
        ----------
        n_features : int
            Number of penultimate features.
        n_classes : int
            Number of classes.

        Returns
        -------
        dict of str to torch.nn.Module
            By any names but "classifier".
        """
        return {}

    def modules(self, n_classes: int) -> dict[str, nn.Module]:
        """Modules of the method's own beside the networks, such as one that learns to weight samples.

        The loop saves and restores them, and all processes have the same. Optimizers of the run do not change
        them: the method trains them in ``plan``.

        Parameters
        ----------
        n_classes : int
            Number of classes.

        Returns
        -------
        dict of str to torch.nn.Module
        """
        return {}

    def initial_state(self, problem: Problem) -> State:
        """The state before the first round.

        Parameters
        ----------
        problem : Problem
            The facts about the run.

        Returns
        -------
        dict of str to Tensor
        """
        return {}

    def plan(self, phase: Phase, evidence: Evidence, state: State) -> Plan:
        """The samples of a phase; by default all that have a label.

        Parameters
        ----------
        phase : Phase
            The phase that is about to begin.
        evidence : Evidence
            Outputs of the networks that the phase names, and the given labels.
        state : dict of str to Tensor
            The state of the method, which may be changed.

        Returns
        -------
        Plan
        """
        return Plan.over(np.flatnonzero(evidence.labels != MISSING))

    def after_step(self, step: Step) -> None:  # noqa: B027 (a hook that most methods leave empty)
        """Called after the optimizers have made their steps for a batch.

        Parameters
        ----------
        step : Step
            The same object that ``loss`` got, with the ``gradients`` of its variables. ``is_made`` is false
            if no weights were changed.
        """

    def final_confidence(self, evidence: Evidence, state: State) -> FloatArray:
        """The confidence of each given label; by default its predicted probability.

        Parameters
        ----------
        evidence : Evidence
            Outputs of the predicting networks for all samples, held-out ones included.
        state : dict of str to Tensor
            The state of the method, which is about the training part only.

        Returns
        -------
        ndarray of shape (n_samples,)
            NaN where no label was given.
        """
        return at_given_labels(evidence.mean_probabilities(), evidence.labels)
